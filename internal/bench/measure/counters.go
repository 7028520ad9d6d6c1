package measure

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/bench"
	"github.com/windlass-dev/windlass/internal/proctime"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// counters is what the parts of a server have used so far.
type counters map[bench.Part]bench.Cost

// usedBy is what the server uses while do runs. With memory that includes what the programs with
// metrics allocate. What reading the metrics costs is no part of the time.
func (s *server) usedBy(ctx context.Context, memory bool, do func() error) (map[bench.Part]bench.Cost, error) {
	before, after := counters{}, counters{}
	if memory {
		if err := s.addMemory(ctx, before); err != nil {
			return nil, err
		}
	}
	if err := s.addTimes(before); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	if err := s.addTimes(after); err != nil {
		return nil, err
	}
	if memory {
		if err := s.addMemory(ctx, after); err != nil {
			return nil, err
		}
	}
	used := make(map[bench.Part]bench.Cost, len(after))
	for part, cost := range after {
		used[part] = cost.Since(before[part])
	}
	return used, nil
}

// addTimes adds up CPU time and context switches of the processes.
func (s *server) addTimes(to counters) error {
	for _, p := range s.processes {
		cpu, err := proctime.CPU(p.pid)
		if err != nil {
			return fmt.Errorf("of the part %s: %w", p.part, err)
		}
		switches, err := proctime.Switches(p.pid)
		if err != nil {
			return fmt.Errorf("of the part %s: %w", p.part, err)
		}
		cost := to[p.part]
		cost.CPU += cpu
		cost.Switches += switches
		to[p.part] = cost
	}
	return nil
}

// freshAfter is how long programs answer scrapes with the same numbers, and a bit.
const freshAfter = time.Second

// addMemory adds what the programs with metrics have allocated.
func (s *server) addMemory(ctx context.Context, to counters) error {
	for i := range s.processes {
		p := &s.processes[i]
		if p.ops == "" {
			continue
		}
		if wait := freshAfter - time.Since(p.scraped); wait > 0 && !sleep.For(ctx, wait) {
			return ctx.Err()
		}
		numbers, err := scrape(ctx, p.ops)
		if err != nil {
			return err
		}
		p.scraped = time.Now()
		cost := to[p.part]
		cost.Mallocs += numbers.mallocs
		cost.Bytes += numbers.bytes
		cost.Exports = true
		to[p.part] = cost
	}
	return nil
}

// scraped is what the bench reads of a program's metrics.
type scraped struct {
	mallocs, bytes int64
	// idle is how many instances wait for calls.
	idle int
}

// scrape reads a program's metrics.
func scrape(ctx context.Context, ops string) (scraped, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, ops+"/metrics", nil)
	if err != nil {
		return scraped{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return scraped{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return scraped{}, fmt.Errorf("%s/metrics answered %d", ops, response.StatusCode)
	}
	var s scraped
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := s.add(lines.Text()); err != nil {
			return scraped{}, fmt.Errorf("%s/metrics: %w", ops, err)
		}
	}
	return s, lines.Err()
}

// add reads one line of the text format.
func (s *scraped) add(line string) error {
	name, value, _ := strings.Cut(line, " ")
	if at := strings.LastIndexByte(line, '}'); at > 0 {
		name, value = line[:at+1], strings.TrimSpace(line[at+1:])
	}
	instances := strings.HasPrefix(name, "windlass_scheduler_instances{") && strings.Contains(name, `state="idle"`)
	if !instances && name != "go_memstats_mallocs_total" && name != "go_memstats_alloc_bytes_total" {
		return nil
	}
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return err
	}
	switch name {
	case "go_memstats_mallocs_total":
		s.mallocs = int64(number)
	case "go_memstats_alloc_bytes_total":
		s.bytes = int64(number)
	default:
		s.idle += int(number)
	}
	return nil
}
