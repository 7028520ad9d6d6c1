package cluster

import (
	"context"
	"errors"
)

// Controller runs a controller until ctx ends.
func Controller(ctx context.Context, config ControllerConfig) error {
	<-ctx.Done()
	return errors.New("not there")
}

// Cleanup cleans up.
func Cleanup(context.Context, CleanupConfig) error { return errors.New("not there") }
