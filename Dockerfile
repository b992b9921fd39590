# tb in an image that has one static program, and the certificates of public authorities.
#
#   docker build -t tb .
#   docker run -p 8080:8080 tb
ARG GO_IMAGE=golang:1.26

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY . .
RUN scripts/build /out/tb && mkdir /out/state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/LICENSE /src/cmd/tb/NOTICE /
COPY --from=build /out/tb /tb
COPY --from=build --chown=65532:65532 /out/state /state
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/tb"]
CMD ["proxy", "--listen", ":8080"]
