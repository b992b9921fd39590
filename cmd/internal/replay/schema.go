package replay

import (
	"fmt"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

// schema returns what the flags say about the logs.
func (c *Command) schema() accesslog.Schema {
	return accesslog.Schema{Names: c.Field, LogFormat: c.Format}
}

// validateSchema returns an error if --field or --format has a mistake.
func (c *Command) validateSchema() error {
	if err := (accesslog.Schema{Names: c.Field}).Validate(); err != nil {
		return fmt.Errorf("--field: %w", err)
	}
	if err := c.schema().Validate(); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	return nil
}
