package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stepLength is how long a rate lasts: each is a data point.
	stepLength = time.Second
	// requestTime is the processor time of a request of the harness's own service.
	requestTime = 450 * time.Microsecond
	// leastRate and mostRate bound the rates, in the report's proportion: the highest is as much as
	// a core can answer.
	leastRate, mostRate = 100, 2000
	// openRequests is how many requests are open at most, as in the report.
	openRequests  = 16 * 4 * 4
	memcachedPort = "21911"
	// memcachedFactor is how many times as many requests memcached gets, which needs far less for
	// one. Most of what a request costs this machine is on the client's side.
	memcachedFactor = 5
)

// newSteps are the rates of a seed, each between the least and the most, all alike.
func newSteps(seed uint64, length time.Duration) []float64 {
	r := rand.New(rand.NewPCG(seed, 44))
	rates := make([]float64, max(1, int(length/stepLength)))
	for i := range rates {
		rates[i] = leastRate + r.Float64()*(mostRate-leastRate)
	}
	return rates
}

// answer is one request's.
type answer struct {
	step int
	took time.Duration
}

// shared is what a side did to the service and to batch.
type shared struct {
	answers      []answer
	failed       int
	objective    time.Duration
	work         int64
	took, frozen time.Duration
	waited       time.Duration // of all threads of the service
	moves        int
	vain         int // how often what was kept back had changed nothing
}

func (o shared) latencies() (of []float64) {
	for _, a := range o.answers {
		of = append(of, a.took.Seconds())
	}
	return of
}

// byStep are the p95 of each step.
func (o shared) byStep() (p95 []float64) {
	steps := map[int][]float64{}
	for _, a := range o.answers {
		steps[a.step] = append(steps[a.step], a.took.Seconds())
	}
	for _, of := range steps {
		p95 = append(p95, percentile(of, 95))
	}
	return p95
}

// highest is the p95 of the steps' p95: that at high rates.
func (o shared) highest() float64 { return percentile(o.byStep(), 95) }

// violations is how many steps have a p95 beyond the objective, in percent.
func (o shared) violations() float64 {
	n := 0
	all := o.byStep()
	for _, p95 := range all {
		if p95 > o.objective.Seconds() {
			n++
		}
	}
	return 100 * float64(n) / float64(len(all))
}

func (o shared) print(out io.Writer, prefix string) {
	of := o.latencies()
	fmt.Fprintf(out, "%s_p95_ms=%.2f p50=%.2f p99=%.2f failed=%d\n", prefix, percentile(of, 95)*1e3, percentile(of, 50)*1e3, percentile(of, 99)*1e3, o.failed)
	fmt.Fprintf(out, "%s_violations_percent=%.2f\n", prefix, o.violations())
	fmt.Fprintf(out, "%s_waited_percent=%.2f\n", prefix, 100*o.waited.Seconds()/o.took.Seconds())
	fmt.Fprintf(out, "%s_batch_rounds_per_second=%.1f took=%.1fs frozen=%.1fs changes=%d vain=%d\n", prefix, float64(o.work)/o.took.Seconds(), o.took.Seconds(), o.frozen.Seconds(), o.moves, o.vain)
}

// serveRequests is the service: it computes for each byte that it reads, and answers with one.
func serveRequests(out io.Writer, until io.Reader) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, until)
		_ = listener.Close()
	}()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			for one := make([]byte, 1); ; {
				if _, err := io.ReadFull(conn, one); err != nil {
					return
				}
				compute(requestTime)
				if _, err := conn.Write(one); err != nil {
					return
				}
			}
		}()
	}
}

// compute uses processor time of its thread, which it keeps: another one has another clock.
func compute(length time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	x := 0
	for from := clock(unix.CLOCK_THREAD_CPUTIME_ID); clock(unix.CLOCK_THREAD_CPUTIME_ID)-from < length; {
		for range 1000 {
			x = x*31 + 7
		}
	}
	runtime.KeepAlive(x) // so that it is computed
}

// client makes one request on a connection.
type client struct {
	conn net.Conn
	read *bufio.Reader
	kind string
}

func (c *client) ask() error {
	if c.kind != "memcached" {
		if _, err := c.conn.Write([]byte{1}); err != nil {
			return err
		}
		_, err := c.read.ReadByte()
		return err
	}
	if _, err := io.WriteString(c.conn, "get key\r\n"); err != nil {
		return err
	}
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil || string(line) == "END\r\n" {
			return err
		}
	}
}

// awaitMemcached waits until memcached answers, and stores what is asked for.
func awaitMemcached(address string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			defer conn.Close()
			value := make([]byte, 200)
			for i := range value {
				value[i] = 'x'
			}
			fmt.Fprintf(conn, "set key 0 0 %d\r\n%s\r\n", len(value), value)
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err == nil && line != "STORED\r\n" {
				err = fmt.Errorf("memcached said %q", line)
			}
			return err
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// requestTimes are when requests come, in seconds, with their steps: at random, at a multiple of the rate of each step.
func requestTimes(seed uint64, rates []float64, factor float64) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		r := rand.New(rand.NewPCG(seed, 46))
		at := 0.0
		for i, rate := range rates {
			for end := float64(i+1) * stepLength.Seconds(); ; {
				if at += r.ExpFloat64() / (rate * factor); at >= end {
					at = end
					break
				}
				if !yield(i, at) {
					return
				}
			}
		}
	}
}

// askService makes the requests of a seed, at the rate of each step, and returns what became of
// them. How long a request took counts from the moment at which it should have been made.
func askService(address, kind string, seed uint64, rates []float64) (answers []answer, failed int) {
	factor := 1.0
	if kind == "memcached" {
		factor = memcachedFactor
	}
	type request struct {
		step int
		at   time.Time
	}
	due := make(chan request, 1<<20)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range openRequests {
		asking.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				mu.Lock()
				failed++
				mu.Unlock()
				return
			}
			defer conn.Close()
			c := client{conn: conn, read: bufio.NewReader(conn), kind: kind}
			for r := range due {
				err := c.ask()
				took := time.Since(r.at)
				mu.Lock()
				if err != nil {
					failed++
				} else {
					answers = append(answers, answer{r.step, took})
				}
				mu.Unlock()
			}
		})
	}
	began := time.Now()
	for step, at := range requestTimes(seed, rates, factor) {
		when := began.Add(seconds(at))
		time.Sleep(time.Until(when))
		due <- request{step, when}
	}
	close(due)
	asking.Wait()
	slices.SortFunc(answers, func(a, b answer) int { return a.step - b.step })
	return answers, failed
}
