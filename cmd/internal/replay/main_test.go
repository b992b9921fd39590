package replay

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
