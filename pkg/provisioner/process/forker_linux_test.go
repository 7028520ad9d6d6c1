package process

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAllForksHappenOnOneThread(t *testing.T) {
	f := make(forker)
	var serving, asking sync.WaitGroup
	serving.Go(f.forkLoop)
	// Written by the forker's goroutine only.
	threads := map[int]int{}
	const n = 50
	for range n {
		asking.Go(func() { f.do(func() { threads[unix.Gettid()]++ }) })
	}
	asking.Wait()
	close(f)
	serving.Wait()
	if len(threads) != 1 {
		t.Errorf("forks per thread: %v, want all %d on one", threads, n)
	}
}
