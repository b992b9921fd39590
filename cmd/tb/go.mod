module github.com/seed-181794aa/ratelimit/cmd/tb

go 1.25.0

require github.com/seed-181794aa/ratelimit v0.0.0

replace github.com/seed-181794aa/ratelimit => ../..
