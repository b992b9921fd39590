module github.com/seed-181794aa/ratelimit/benchmarks/peers

go 1.25.0

require (
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/seed-181794aa/ratelimit v0.0.0
	golang.org/x/time v0.14.0
)

require github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect

replace github.com/seed-181794aa/ratelimit => ../..
