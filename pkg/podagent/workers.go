package podagent

// workers are goroutines that run one call after the other: a new goroutine for each call would
// grow its stack again each time, which costs more than all else that the agent does for a short
// call. There are as many as calls have run at a time since the instance was last quiet. The
// agent's lock guards them.
type workers struct {
	agent *Agent
	idle  []chan *attempt
	// ended says that no worker stays.
	ended bool
}

// run runs a call in an idle worker, or in a new one.
func (w *workers) run(at *attempt) {
	if last := len(w.idle) - 1; last >= 0 {
		next := w.idle[last]
		w.idle = w.idle[:last]
		next <- at
		return
	}
	next := make(chan *attempt, 1)
	next <- at
	w.agent.tasks.Go(func() {
		for at := range next {
			at.work()
			w.agent.mu.Lock()
			w.rest(next)
			w.agent.mu.Unlock()
		}
	})
}

// rest makes a worker idle again, or ends it.
func (w *workers) rest(next chan *attempt) {
	if w.ended {
		close(next)
		return
	}
	w.idle = append(w.idle, next)
}

// release ends the idle workers, whose stacks are memory. The others end too, after their calls,
// if for good is set.
func (w *workers) release(forGood bool) {
	for _, next := range w.idle {
		close(next)
	}
	w.idle, w.ended = nil, w.ended || forGood
}
