package proxy

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
