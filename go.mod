module github.com/seed-181794aa/ratelimit

go 1.25.0
