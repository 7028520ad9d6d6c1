package sleep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestASleepLastsUntilItsTimeOrItsContextEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ends, lasted time.Duration
		whole        bool
	}{
		"its time":            {time.Hour, time.Minute, true},
		"its context":         {time.Second, time.Second, false},
		"it had ended before": {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				began := time.Now()
				if whole := For(ctx, time.Minute); whole != c.whole || time.Since(began) != c.lasted {
					t.Errorf("it lasted %v, and said %v", time.Since(began), whole)
				}
			})
		})
	}
}
