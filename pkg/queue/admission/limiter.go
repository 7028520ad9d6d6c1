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

// BacklogEstimate says how fast the instances work off a queue.
type BacklogEstimate struct {
	// Parallel is how many calls the instances that exist, or are on their
	// way, run at a time.
	Parallel int
	// Mean is the mean execution time; 0 if unknown. It comes from agents, so the caller
	// must have capped each execution at the function's timeout.
	Mean time.Duration
	// AtCapacity says that no further instance can come: the function has its maximum,
	// or no node has room.
	AtCapacity bool
}

// Call is a call that asks for admission.
type Call struct {
	Now time.Time
	// Term is that in which the function is served. In a new one, earlier calls
	// are not known.
	Term invocation.Term
	// Reoffered says that the call was offered before, to the queue of a previous owner:
	// this queue would know it.
	Reoffered bool
	// Remaining is how long the caller still waits.
	Remaining time.Duration
	// Waiting and Out are the calls that are in already.
	Waiting, Out int
	// Jitter is a random number in [0, 1) that spreads RetryAfter.
	Jitter float64
}

// Limiter counts recent calls against the rate. Its zero value is for a function without
// history. It is not safe for concurrent use.
type Limiter struct {
	term   invocation.Term
	limits Limits
	bucket *rate.Limiter // nil while there is no Rate
}

// Admit admits a call, or says why not.
func (l *Limiter) Admit(c Call, limits Limits, o BacklogEstimate) *invocation.Refusal {
	if c.Reoffered {
		return nil
	}
	if limits.Concurrency > 0 && c.Waiting+c.Out >= limits.Concurrency {
		return &invocation.Refusal{
			Reason:     invocation.RefusedConcurrency,
			Detail:     fmt.Sprintf("%d calls of this function wait or run, and its limit is %d; call it less often, or raise spec.calls.maxInFlight", c.Waiting+c.Out, limits.Concurrency),
			RetryAfter: RetryAfter(o.Mean, c.Jitter),
		}
	}
	if wait := o.Wait(c.Waiting); o.AtCapacity && wait > c.Remaining {
		return &invocation.Refusal{
			Reason: invocation.RefusedWait,
			Detail: fmt.Sprintf("the call would wait for about %s and is wanted for %s; call it less often, or let the function scale further (spec.scaling.maxInstances, or more nodes)",
				wait.Round(100*time.Millisecond), c.Remaining.Round(100*time.Millisecond)),
			RetryAfter: RetryAfter(wait, c.Jitter),
		}
	}
	l.updateBucket(c, limits)
	if l.bucket == nil || l.bucket.AllowN(c.Now, 1) {
		return nil
	}
	missing := 1 - l.bucket.TokensAt(c.Now)
	return &invocation.Refusal{
		Reason:     invocation.RefusedRate,
		Detail:     fmt.Sprintf("this function takes %.3g calls a second, and %d at once; call it less often, or raise spec.calls.rate.requests", limits.Rate, limits.Burst),
		RetryAfter: RetryAfter(time.Duration(missing/limits.Rate*float64(time.Second)), c.Jitter),
	}
}

// updateBucket makes the bucket that of the limits and of the term. A new bucket is half
// full: the previous owner may have admitted as many calls just now.
func (l *Limiter) updateBucket(c Call, limits Limits) {
	switch {
	case limits.Rate <= 0:
		l.bucket = nil
	case l.bucket == nil || l.term != c.Term:
		l.bucket = rate.NewLimiter(rate.Limit(limits.Rate), limits.Burst)
		l.bucket.AllowN(c.Now, limits.Burst/2)
	case l.limits != limits:
		l.bucket.SetLimitAt(c.Now, rate.Limit(limits.Rate))
		l.bucket.SetBurstAt(c.Now, limits.Burst)
	}
	l.term, l.limits = c.Term, limits
}

// Wait is how long a call waits behind that many others; 0 if unknown.
func (o BacklogEstimate) Wait(waiting int) time.Duration {
	if o.Mean <= 0 || o.Parallel <= 0 {
		return 0
	}
	return time.Duration(min(float64(waiting)*float64(o.Mean)/float64(o.Parallel), math.MaxInt64/2))
}

const (
	minRetryAfter = time.Second
	// maxRetryAfter is short enough for a caller to find the function free soon
	// after it is.
	maxRetryAfter = 25 * time.Second
	// retrySpread is by how much retries differ, so that those who were refused
	// together do not come back together.
	retrySpread = 0.2
)

// RetryAfter is when a caller should try again if the reason for its refusal will
// be gone after that time; jitter is a random number in [0, 1). It is 1s to 25s, more or less.
func RetryAfter(gone time.Duration, jitter float64) time.Duration {
	base := float64(min(max(gone, minRetryAfter), maxRetryAfter))
	return time.Duration(base * (1 - retrySpread + 2*retrySpread*jitter))
}
