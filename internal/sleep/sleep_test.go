package sleep

import (
	"context"
	"errors"
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

func TestUntilAsksUntilItIsSoOrNobodyCanSay(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		answers []error // nil is "not yet"; the last one is for ever
		asked   int
		ends    error
	}{
		"it is so":       {[]error{nil, nil, errSo}, 3, nil},
		"nobody can say": {[]error{nil, broken}, 2, broken},
		"its time ends":  {[]error{nil}, 5, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
				defer cancel()
				asked := 0
				err := Until(ctx, time.Second, func() (bool, error) {
					answer := c.answers[min(asked, len(c.answers)-1)]
					asked++
					if errors.Is(answer, errSo) {
						return true, nil
					}
					return false, answer
				})
				if !errors.Is(err, c.ends) || asked != c.asked {
					t.Errorf("asked %d times, which ended with %v; want %d, %v", asked, err, c.asked, c.ends)
				}
			})
		})
	}
}

// errSo stands for the answer that it is so.
var errSo = errors.New("it is so")
