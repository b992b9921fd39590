module github.com/seed-181794aa/ratelimit

go 1.25.0

require (
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
)
