package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheFirstCallThatFailsEndsAMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		began := time.Now()
		_, err := makeCalls(8, time.Minute, func(context.Context) error {
			time.Sleep(time.Millisecond)
			return refused
		})
		if took := time.Since(began); err == nil || err.Error() != "connection refused" || took > time.Millisecond {
			t.Errorf("it ends after %v with %v", took, err)
		}
		made, err := makeCalls(2, time.Second, func(context.Context) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		if err != nil || made < 20 || made > 22 {
			t.Errorf("%d calls, %v; want 20", made, err)
		}
	})
}
