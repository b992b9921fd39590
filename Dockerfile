# tb, tb-proxy and tb-rls in an image that has these static programs, and the certificates of public
# authorities.
#
#   docker build -t tb .
#   docker run -p 8080:8080 tb
ARG GO_IMAGE=golang:1.26

FROM ${GO_IMAGE} AS build
WORKDIR /src
ENV GOWORK=off
# The modules of others are a layer of their own, which a change of the sources leaves as it is.
COPY go.mod go.sum ./
COPY cmd/go.mod cmd/go.sum cmd/
COPY tb/redis/go.mod tb/redis/go.sum tb/redis/
COPY metrics/go.mod metrics/go.sum metrics/
RUN go -C cmd mod download
COPY . .
RUN scripts/build /out && mkdir /out/state

FROM scratch
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="tb" \
    org.opencontainers.image.description="Rate limits: a reverse proxy, a service for Envoy, and logs replayed" \
    org.opencontainers.image.source="https://github.com/seed-181794aa/ratelimit" \
    org.opencontainers.image.licenses="MIT" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/LICENSE /src/cmd/NOTICE /
COPY --from=build /out/tb* /
COPY --from=build --chown=65532:65532 /out/state /state
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/tb-proxy"]
CMD ["--listen", ":8080"]
