package node

import (
	"errors"
	"math"
	"time"
)

// Service is a latency-critical service: a pool of threads that answer requests which come at
// random, M/G/c.
type Service struct {
	// Time is the mean processor time of a request where each thread has a core.
	Time time.Duration
	// Variation is the squared coefficient of variation of that time.
	Variation float64
	Threads   int
	// Packed is the factor on Time where there are fewer cores than threads.
	Packed float64
	// Outstanding is how many requests its clients have open at most.
	Outstanding int
	// Objective is what 95 % of an interval's requests must not exceed.
	Objective time.Duration
	// Late is the share of the time in which a core that low-band work computes on is Stall late
	// for the service, and Cold the factor on Time on such a core.
	Late  float64
	Stall time.Duration
	Cold  float64
	// Switch is what batch loses of a core for each request that interrupts it.
	Switch time.Duration
}

func (s Service) check() error {
	switch {
	case s.Time <= 0 || s.Objective <= s.Time:
		return errors.New("has a service whose objective is not longer than its time, or whose time is not more than 0")
	case s.Threads < 1 || s.Outstanding < s.Threads:
		return errors.New("has a service without threads, or with fewer requests outstanding than threads")
	case !(s.Packed >= 1 && s.Cold >= 1):
		return errors.New("has a service with a factor below 1")
	case !(s.Late >= 0 && s.Late <= 1) || !(s.Variation >= 0):
		return errors.New("has a service with a share out of range")
	}
	return nil
}

// place is where the service computes for a moment.
type place struct {
	cores int
	// exposed is which part of its work is on cores on which batch computes, too.
	exposed float64
}

// time is the mean processor time of a request in a place, in seconds.
func (s Service) time(at place) float64 {
	t := s.Time.Seconds() * (1 + (s.Cold-1)*at.exposed)
	if at.cores < s.Threads {
		t *= s.Packed
	}
	return t
}

// servers is how many requests it computes on at the same time.
func (s Service) servers(at place) int { return min(s.Threads, at.cores) }

// capacity is how many requests a second it can answer.
func (s Service) capacity(at place) float64 { return float64(s.servers(at)) / s.time(at) }

// late is the share of requests that miss the objective, at a rate, with a number of open requests
// above those of a steady state.
func (s Service) late(at place, rate, open float64) float64 {
	left := s.Objective.Seconds() - s.time(at) - open/s.capacity(at)
	if left <= 0 {
		return 1
	}
	late := s.waits(at, rate, left)
	if s.Stall > s.Objective {
		late += (1 - late) * s.Late * at.exposed
	}
	return late
}

// waits is the share of requests that wait for longer than a time. The wait in M/M/c is
// exponential for those that wait; in M/G/c its mean is (1+CV²)/2 times as long (Allen and
// Cunneen).
func (s Service) waits(at place, rate, longer float64) float64 {
	servers := float64(s.servers(at))
	offered := rate * s.time(at)
	if offered >= servers {
		return 1
	}
	spare := (s.capacity(at) - rate) * 2 / (1 + s.Variation)
	return erlangC(s.servers(at), offered) * math.Exp(-spare*longer)
}

// erlangC is the share of those who come to c servers at an offered load, below c, who wait.
func erlangC(c int, offered float64) float64 {
	blocked := 1.0 // Erlang's B, by its recursion
	for k := 1; k <= c; k++ {
		blocked = offered * blocked / (float64(k) + offered*blocked)
	}
	return blocked / (1 - offered/float64(c)*(1-blocked))
}
