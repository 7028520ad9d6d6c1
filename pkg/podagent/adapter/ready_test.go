package adapter

import (
	"context"
	"errors"
	"testing"
)

func TestA15AFunctionThatIsNotReadyIsExplainedInPlainWords(t *testing.T) {
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for ctx, want := range map[context.Context]string{
		late:    "nothing listens; if it needs more time, raise startupTimeout",
		stopped: "nothing listens",
	} {
		if err := NotReady(ctx, "nothing listens"); err.Error() != want || !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
