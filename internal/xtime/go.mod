module github.com/seed-181794aa/ratelimit/internal/xtime

go 1.26.0

require (
	github.com/seed-181794aa/ratelimit v0.0.0
	golang.org/x/time v0.16.0
)

require github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect

replace github.com/seed-181794aa/ratelimit => ../..
