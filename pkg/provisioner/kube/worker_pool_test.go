package kube

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowWorkOfOneFlowHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan string, 200)
		p := newWorkerPool(Config{QPS: 1000, Burst: 1000, Workers: 8}, func(ctx context.Context, item string) {
			if item == "slow" {
				<-ctx.Done()
			}
			done <- item
		})
		for range 100 {
			p.push("slow", "slow", 0)
		}
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		running.Go(func() { p.run(ctx) })
		synctest.Wait()
		p.push("quick", "quick", 0)
		synctest.Wait()
		if len(done) != 1 {
			t.Fatal("the quick flow waits for the slow one")
		}
		if got := <-done; got != "quick" {
			t.Errorf("%s was done first", got)
		}
	})
}

func TestWorkKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan int, 1000)
		p := newWorkerPool(Config{QPS: 10, Burst: 5, Workers: 8}, func(_ context.Context, item int) { done <- item })
		for i := range 1000 {
			p.push("flow", i, 0)
		}
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		running.Go(func() { p.run(ctx) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(done); n < 100 || n > 106 {
			t.Errorf("%d in ten seconds, want 105 or one more", n)
		}
	})
}

func TestNothingIsPushedBeyondTheLimit(t *testing.T) {
	p := newWorkerPool(Config{QPS: 1, Burst: 1, Workers: 1}, func(context.Context, int) {})
	for i := range 3 {
		if got, want := p.push("flow", i, 2), i < 2; got != want {
			t.Errorf("push %d: %v, want %v", i, got, want)
		}
	}
}
