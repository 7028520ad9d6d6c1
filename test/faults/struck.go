package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// strike hurts instances of the function that is called, some times, each one while it runs a call.
func (s *faultEnv) strike(ctx context.Context, next func(*rand.Rand) request, times int, hurt func(pod *lab.Pod) error) error {
	var struck []string
	function := strings.TrimPrefix(next(s.rng).Function, lab.Namespace+"/")
	calls, err := s.underLoad(ctx, s.config(next), func() error {
		for range times {
			pod, nonce, err := s.busy(ctx, function)
			if err == nil {
				struck = append(struck, nonce)
				err = hurt(pod)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	runs, err := s.unread()
	hit := hits(struck, calls, runs)
	s.note("hit=%d", len(hit))
	s.shows(len(hit) > 0, "no call ran where it was struck")
	return err
}

// Times of a search for an instance that runs a call.
const (
	busyWithin = 10 * time.Second
	// justBegun is how long ago the call has begun at most, so that it still runs when it is struck.
	justBegun = 50 * time.Millisecond
)

// busy waits until an instance of a function has just begun to run a call.
func (s *faultEnv) busy(ctx context.Context, function string) (pod *lab.Pod, nonce string, err error) {
	ctx, cancel := context.WithTimeout(ctx, busyWithin)
	defer cancel()
	err = sleep.Until(ctx, 5*time.Millisecond, func() (bool, error) {
		runs, err := s.unread()
		if err != nil {
			return false, err
		}
		pods := s.Kubelet.PodsOf(function)
		var cids []string
		for _, pod := range pods {
			cids = append(cids, pod.CID)
		}
		run, found := youngest(runs, cids, now()-int64(justBegun))
		if found {
			pod, nonce = pods[slices.Index(cids, run.CID)], run.Nonce
		}
		return found, nil
	})
	if err != nil {
		err = fmt.Errorf("no instance of %s runs a call: %w", function, err)
	}
	return pod, nonce, err
}

// youngest is the execution at one of these instances that began last, if that was since a moment, and that has not
// ended.
func youngest(runs []verdict.Run, cids []string, since int64) (run verdict.Run, found bool) {
	for _, r := range runs {
		if r.Ended == 0 && r.Began >= max(since, run.Began) && slices.Contains(cids, r.CID) {
			run, found = r, true
		}
	}
	return run, found
}

// hits are those of the struck calls that felt it: they failed, or were run again.
func hits(struck []string, calls []verdict.Call, runs []verdict.Run) []string {
	times := make(map[string]int)
	for _, run := range runs {
		times[run.Nonce]++
	}
	var hit []string
	for _, c := range calls {
		if slices.Contains(struck, c.Nonce) && (!c.Succeeded() || times[c.Nonce] > 1) {
			hit = append(hit, c.Nonce)
		}
	}
	return hit
}
