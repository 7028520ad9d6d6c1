package admission

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Limits bound the calls of one function.
type Limits struct {
	// Concurrency is how many calls may wait and run; 0 means any number.
	Concurrency int
	// Rate is how many calls a second are taken in the long run; 0 means any
	// number. Burst, at least 1 if there is a Rate, is how many at once.
	Rate  float64
	Burst int
}

// Outlook is what is known of how fast a queue is worked off.
type Outlook struct {
	// Parallel is how many calls the instances that exist, or are on their
	// way, run at a time.
	Parallel int
	// Mean is the mean execution time; 0 if unknown. It comes from agents and
	// must have been held within what the function may take.
	Mean time.Duration
	// Stuck says that no further instance can come: there are as many as there
	// may be, or no node has room.
	Stuck bool
}

// Call is a call that wants in.
type Call struct {
	Now time.Time
	// Term is that in which the function is served. In a new one, earlier calls
	// are not known.
	Term invocation.Term
	// Again says that the call was offered before: not to this queue, or it
	// would be known, but to that of an owner that is gone.
	Again bool
	// Remaining is how long the call is wanted.
	Remaining time.Duration
	// Waiting and Out are the calls that are in already.
	Waiting, Out int
	// Chance is a random number in [0, 1).
	Chance float64
}

// Intake remembers how many calls came lately. Its zero value is that of a
// function of which nothing is known. It is not safe for concurrent use.
type Intake struct {
	term   invocation.Term
	limits Limits
	bucket *rate.Limiter // nil while there is no Rate
}

// Admit takes a call in, or says why not.
func (in *Intake) Admit(c Call, l Limits, o Outlook) *invocation.Refusal {
	if c.Again {
		return nil
	}
	if l.Concurrency > 0 && c.Waiting+c.Out >= l.Concurrency {
		return &invocation.Refusal{
			Reason:     invocation.RefusedConcurrency,
			Detail:     fmt.Sprintf("%d calls of this function wait or run, which is its limit; call it less often, or raise spec.calls.maxInFlight", c.Waiting+c.Out),
			RetryAfter: RetryAfter(o.Mean, c.Chance),
		}
	}
	if wait := o.Wait(c.Waiting); o.Stuck && wait > c.Remaining {
		return &invocation.Refusal{
			Reason: invocation.RefusedWait,
			Detail: fmt.Sprintf("the call would wait for about %s and is wanted for %s; call it less often, or let the function scale further (spec.scaling.maxInstances, or more nodes)",
				wait.Round(100*time.Millisecond), c.Remaining.Round(100*time.Millisecond)),
			RetryAfter: RetryAfter(wait, c.Chance),
		}
	}
	in.follow(c, l)
	if in.bucket == nil || in.bucket.AllowN(c.Now, 1) {
		return nil
	}
	missing := 1 - in.bucket.TokensAt(c.Now)
	return &invocation.Refusal{
		Reason:     invocation.RefusedRate,
		Detail:     fmt.Sprintf("this function takes %.3g calls a second, and %d at once; call it less often, or raise spec.calls.rate.requests", l.Rate, l.Burst),
		RetryAfter: RetryAfter(time.Duration(missing/l.Rate*float64(time.Second)), c.Chance),
	}
}

// follow makes the bucket that of the limits and of the term. A new bucket is half
// full: whoever served the function before may have let as many calls in just now.
func (in *Intake) follow(c Call, l Limits) {
	switch {
	case l.Rate <= 0:
		in.bucket = nil
	case in.bucket == nil || in.term != c.Term:
		in.bucket = rate.NewLimiter(rate.Limit(l.Rate), l.Burst)
		in.bucket.AllowN(c.Now, l.Burst/2)
	case in.limits != l:
		in.bucket.SetLimitAt(c.Now, rate.Limit(l.Rate))
		in.bucket.SetBurstAt(c.Now, l.Burst)
	}
	in.term, in.limits = c.Term, l
}

// Wait is how long a call waits behind so many others; 0 if that is unknown.
func (o Outlook) Wait(waiting int) time.Duration {
	if o.Mean <= 0 || o.Parallel <= 0 {
		return 0
	}
	return time.Duration(min(float64(waiting)*float64(o.Mean)/float64(o.Parallel), math.MaxInt64/2))
}

const (
	shortestRetry = time.Second
	// longestRetry is short enough for a caller to find the function free soon
	// after it is.
	longestRetry = 30 * time.Second
	// spread is by how much retries differ, so that those who were refused
	// together do not come back together.
	spread = 0.2
)

// RetryAfter is when a caller should try again if the reason for its refusal will
// be gone after that time; chance is a random number in [0, 1). It is 1s to 30s.
func RetryAfter(gone time.Duration, chance float64) time.Duration {
	base := min(float64(gone), float64(longestRetry)/(1+spread))
	return max(shortestRetry, time.Duration(base*(1-spread+2*spread*chance)))
}
