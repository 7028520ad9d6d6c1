package gateway

import (
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// trickle is a body that gives some bytes after some time, again and again.
type trickle struct {
	every   time.Duration
	bytes   int
	aborted chan struct{}
}

// SetReadDeadline implements readDeadliner.
func (s *trickle) SetReadDeadline(time.Time) error {
	close(s.aborted)
	return nil
}

func (s *trickle) Read(p []byte) (int, error) {
	select {
	case <-s.aborted:
		return 0, os.ErrDeadlineExceeded
	case <-time.After(s.every):
		return s.bytes, nil
	}
}

// read reads a body until it fails or an hour has passed.
func read(body *trickle, prepare func(*requestBody), between time.Duration) (took time.Duration, err error) {
	b := &requestBody{body: body, conn: body}
	prepare(b)
	began, buffer := time.Now(), make([]byte, 1<<20)
	for time.Since(began) < time.Hour && err == nil {
		_, err = b.Read(buffer)
		time.Sleep(between)
	}
	return time.Since(began), err
}

func TestHowSlowlyABodyMayCome(t *testing.T) {
	for _, tt := range []struct {
		name    string
		every   time.Duration
		bytes   int
		between time.Duration
		answers bool
		slow    bool
		atMost  time.Duration
	}{
		{name: "fast", every: 100 * time.Millisecond, bytes: 10 << 10},
		{name: "just fast enough", every: time.Second, bytes: 1 << 10},
		{name: "in lumps", every: 9 * time.Second, bytes: 9 << 10},
		{name: "a byte at a time", every: time.Second, bytes: 1, slow: true, atMost: 11 * time.Second},
		{name: "half as fast", every: time.Second, bytes: 512, slow: true, atMost: 20 * time.Second},
		{name: "not at all", every: time.Hour, slow: true, atMost: 10 * time.Second},
		{name: "its reader takes its time", every: time.Millisecond, bytes: 1000, between: time.Minute},
		{name: "the function answers meanwhile", every: time.Minute, bytes: 1, answers: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := &trickle{every: tt.every, bytes: tt.bytes, aborted: make(chan struct{})}
				took, err := read(body, func(b *requestBody) { b.mayPause.Store(tt.answers) }, tt.between)
				if errors.Is(err, errTooSlow) != tt.slow || (tt.slow && took > tt.atMost) {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// What came fast is not saved up for hours of silence.
func TestGraceIsNotSavedUp(t *testing.T) {
	p := waitBudget{}
	for range 1000 {
		p = p.after(1<<20, time.Millisecond)
	}
	if left := p.left(); left != bodyGrace {
		t.Errorf("%v is left", left)
	}
	if left := p.after(0, 4*time.Second).after(1<<10, 0).left(); left != bodyGrace-3*time.Second {
		t.Errorf("%v is left after 4 s of silence and 1 KiB", left)
	}
}

func TestABodyThatEndsIsNotSlow(t *testing.T) {
	b := &requestBody{body: io.MultiReader()}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || !b.ended.Load() {
		t.Errorf("%v, ended %v", err, b.ended.Load())
	}
}
