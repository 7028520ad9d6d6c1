package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// call is a call of a trace.
type call struct {
	at       time.Duration // when it is made
	function string
	class    string
	cpu      time.Duration // processor time that it needs
	sleep    time.Duration // how long it sleeps first
	depth    int           // how many calls it makes and waits for, each by the one before
}

// trace is calls in the order of their times, and how many instances each function has.
type trace struct {
	calls     []call
	instances map[string]int
}

// work is the processor time of all calls.
func (t trace) work() (sum time.Duration) {
	for _, c := range t.calls {
		sum += c.cpu
	}
	return sum
}

// shape makes the trace of a seed with a load on one core for a time.
type shape func(rng *rand.Rand, load float64, length time.Duration) trace

var shapes = map[string]shape{"two": two, "azure": azure, "zuk": zuk, "short": short}

func newTrace(name string, seed uint64, load float64, length time.Duration) (trace, error) {
	shape, known := shapes[name]
	if !known {
		return trace{}, fmt.Errorf("there is no trace %q; use two, azure, zuk, short or hybrid", name)
	}
	t := shape(rand.New(rand.NewPCG(seed, 17)), load, length)
	slices.SortStableFunc(t.calls, func(a, b call) int { return int(a.at - b.at) })
	return t, nil
}

// two is calls of 10 ms that come at random, and of 1 s that come at regular times; each is half
// of the load.
func two(rng *rand.Rand, load float64, length time.Duration) trace {
	t := trace{instances: map[string]int{"short": 10, "long": 8}}
	rate := load / 2 / 0.010
	for at := rng.ExpFloat64() / rate; at < length.Seconds(); at += rng.ExpFloat64() / rate {
		t.calls = append(t.calls, call{at: seconds(at), function: "short", class: "short", cpu: 10 * time.Millisecond})
	}
	n := int(math.Round(load / 2 * length.Seconds()))
	for i := range n {
		at := 0.05 + float64(i)*length.Seconds()/float64(n)*0.95 + rng.Float64()*0.2
		t.calls = append(t.calls, call{at: seconds(at), function: "long", class: "long", cpu: time.Second})
	}
	slices.SortStableFunc(t.calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	return t
}

// short is calls of 10 ms that come at random.
func short(rng *rand.Rand, load float64, length time.Duration) trace {
	t := trace{instances: map[string]int{"short": 20}}
	rate := load / 0.010
	for at := rng.ExpFloat64() / rate; at < length.Seconds(); at += rng.ExpFloat64() / rate {
		t.calls = append(t.calls, call{at: seconds(at), function: "short", class: "short", cpu: 10 * time.Millisecond})
	}
	return t
}

// sizes are those of SFS, Table I, as its authors' code has them: milliseconds, shares of calls,
// and classes. Here they are divided by ten.
var sizes = []struct {
	ms, share float64
	class     string
}{
	{13, .429 / 7, "1-4ms"}, {14, .429 / 7, "1-4ms"}, {15, .429 / 7, "1-4ms"}, {18, .429 / 7, "1-4ms"},
	{23, .429 / 7, "1-4ms"}, {30, .429 / 7, "1-4ms"}, {42, .429 / 7, "1-4ms"},
	{60, .053, "6-9ms"}, {90, .053, "6-9ms"}, {140, .077, "14ms"}, {220, .222, "22-35ms"}, {346, .013, "22-35ms"},
	{1425, .0775, "140-234ms"}, {2344, .0765, "140-234ms"},
}

// azure has as many calls of each size as its share says, in a random order, so that the load is
// what it should be.
func azure(rng *rand.Rand, load float64, length time.Duration) trace {
	mean := 0.0
	shares := 0.0
	for _, s := range sizes {
		mean += s.share * s.ms / 10 / 1000
		shares += s.share
	}
	n := load / (mean / shares) * length.Seconds()
	t := trace{instances: map[string]int{}}
	for _, s := range sizes {
		name := fmt.Sprintf("fib%d", int(s.ms))
		t.instances[name] = 6
		if s.ms > 1000 {
			t.instances[name] = 20
		}
		for range int(math.Round(n * s.share / shares)) {
			t.calls = append(t.calls, call{
				at: seconds(rng.Float64() * length.Seconds()), function: name, class: s.class,
				cpu: seconds(s.ms / 10 / 1000),
			})
		}
	}
	return t
}

// functions are those of Zuk et al., Table I, that compute: client medians in milliseconds. sleep
// only sleeps. Here they are divided by ten.
var functions = []struct {
	name  string
	ms    float64
	sleep bool
}{
	{"dna-visualisation", 8552, false}, {"sleep", 1022, true}, {"compression", 807, false},
	{"video-processing", 593, false}, {"uploader", 192, true}, {"image-recognition", 121, false},
	{"thumbnailer", 118, false}, {"dynamic-html", 19, false}, {"graph-pagerank", 12, false},
	{"graph-bfs", 12, false}, {"graph-mst", 12, false},
}

// zuk has equally many calls of each function at random times: 1.1 a core for each unit of
// intensity, in a minute. The load is that intensity divided by 100. A tenth of their times makes
// it six seconds, whatever the length.
func zuk(rng *rand.Rand, load float64, _ time.Duration) trace {
	t := trace{instances: map[string]int{}}
	each := int(math.Round(1.1 * load * 100 / float64(len(functions))))
	for _, f := range functions {
		t.instances[f.name] = 8
		for range each {
			c := call{at: seconds(6 * rng.Float64()), function: f.name, class: f.name, cpu: seconds(f.ms / 10 / 1000)}
			if f.sleep {
				c.cpu, c.sleep = time.Millisecond, c.cpu
			}
			t.calls = append(t.calls, c)
		}
	}
	return t
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
