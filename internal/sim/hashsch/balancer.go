package hashsch

import "hash/fnv"

// Balancer is one controller's account of its shares.
type Balancer struct {
	// free is how much of each worker's share is not in use; it is negative
	// where calls were sent in spite of that.
	free  []int
	share int
	steps []int
}

// NewBalancer makes the Balancer of one of several controllers, with workers that have slots
// containers each. All numbers are at least 1, and so is its share of a worker.
func NewBalancer(workers, slots, controllers int) *Balancer {
	b := &Balancer{share: max(1, slots/controllers)}
	b.Grow(workers)
	return b
}

// Grow adds workers up to that number, which changes the homes of functions.
func (b *Balancer) Grow(workers int) {
	for len(b.free) < workers {
		b.free = append(b.free, b.share)
	}
	b.steps = steps(workers)
}

// Place picks the worker for a call of a function with that Hash and takes a slot of it.
// forced says that every share was used up, so that the worker was picked at random: only then
// it calls intn(n), which must return a random number in [0, n).
func (b *Balancer) Place(hash uint64, intn func(n int) int) (worker int, forced bool) {
	n := len(b.free)
	worker = int(hash % uint64(n))
	step := b.steps[hash%uint64(len(b.steps))]
	for range n {
		if b.free[worker] > 0 {
			b.free[worker]--
			return worker, false
		}
		worker = (worker + step) % n
	}
	worker = intn(n)
	b.free[worker]--
	return worker, true
}

// Release gives the slot of a call back that has ended.
func (b *Balancer) Release(worker int) { b.free[worker]++ }

// Hash is the number that decides on a function's home.
func Hash(namespace, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(namespace + "/" + name))
	return h.Sum64()
}

// steps are the numbers up to n that share no divisor with n, nor with a smaller one
// of them.
func steps(n int) []int {
	var found []int
	for i := 1; i <= n; i++ {
		coprime := divisor(i, n) == 1
		for _, other := range found {
			coprime = coprime && divisor(i, other) == 1
		}
		if coprime {
			found = append(found, i)
		}
	}
	return found
}

// divisor is the greatest common one.
func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
