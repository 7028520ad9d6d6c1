package cluster

import (
	"math"
	"math/rand/v2"
	"time"
)

// Distribution is one of durations. Its zero value is always 0.
type Distribution struct {
	// draw is nil for the zero value.
	draw func(rng *rand.Rand) time.Duration
	mean time.Duration
}

// Mean is the distribution's mean.
func (d Distribution) Mean() time.Duration { return d.mean }

// Draw draws one duration, at least 0.
func (d Distribution) Draw(rng *rand.Rand) time.Duration {
	if d.draw == nil {
		return 0
	}
	return d.draw(rng)
}

// Fixed is always the same duration.
func Fixed(d time.Duration) Distribution {
	return Distribution{mean: d, draw: func(*rand.Rand) time.Duration { return d }}
}

// Exponential is the exponential distribution.
func Exponential(mean time.Duration) Distribution {
	return Distribution{mean: mean, draw: func(rng *rand.Rand) time.Duration {
		return time.Duration(rng.ExpFloat64() * float64(mean))
	}}
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// LogNormal is the log-normal distribution of that median and 99th percentile, which
// must be at least the median.
func LogNormal(median, p99 time.Duration) Distribution {
	sigma := math.Log(float64(p99)/float64(median)) / z99
	return Distribution{
		mean: time.Duration(float64(median) * math.Exp(sigma*sigma/2)),
		draw: func(rng *rand.Rand) time.Duration {
			return time.Duration(float64(median) * math.Exp(sigma*rng.NormFloat64()))
		},
	}
}

// Uniform is each duration from one to another with the same probability.
func Uniform(from, to time.Duration) Distribution {
	return Distribution{mean: (from + to) / 2, draw: func(rng *rand.Rand) time.Duration {
		return from + time.Duration(rng.Float64()*float64(to-from))
	}}
}
