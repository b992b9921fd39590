module github.com/seed-181794aa/ratelimit/benchmarks/report

go 1.25.0

require (
	github.com/seed-181794aa/ratelimit v0.0.0
	golang.org/x/perf v0.0.0-20250813145418-2f7363a06fe1
)

require github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect

replace github.com/seed-181794aa/ratelimit => ../..
