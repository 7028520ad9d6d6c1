package main

import (
	"fmt"
	"io"
	"time"
)

// memory is what a process holds, in bytes, or what a thing takes of it.
type memory struct {
	// Go are the objects on the heap, and the stacks; Resident is what the kernel counts.
	Go, Resident int64
	// Goroutines are how many there are; of a thing, in hundredths.
	Goroutines int64
}

func (m memory) plus(other memory) memory {
	return memory{m.Go + other.Go, m.Resident + other.Resident, m.Goroutines + other.Goroutines}
}

// each is what one of n things takes that were added since before.
func (m memory) each(before memory, n int) memory {
	return memory{
		(m.Go - before.Go) / int64(n), (m.Resident - before.Resident) / int64(n), 100 * (m.Goroutines - before.Goroutines) / int64(n),
	}
}

// snapshot is the memory of all processes at one time.
type snapshot struct{ scheduler, gateway, host memory }

func (s snapshot) each(before snapshot, n int) snapshot {
	return snapshot{
		s.scheduler.each(before.scheduler, n), s.gateway.each(before.gateway, n), s.host.each(before.host, n),
	}
}

// printEach prints what one thing takes in scheduler and gateway, and their sum, which comes first.
func (s snapshot) printEach(out io.Writer, thing string) {
	parts := []struct {
		name string
		of   memory
	}{
		{"", s.scheduler.plus(s.gateway)}, {"_scheduler", s.scheduler}, {"_gateway", s.gateway},
	}
	for _, p := range parts {
		fmt.Fprintf(out, "density_%s_bytes%s=%d\n", thing, p.name, p.of.Go)
	}
	for _, p := range parts {
		fmt.Fprintf(out, "density_%s_resident%s=%d\n", thing, p.name, p.of.Resident)
	}
}

// printGoroutines prints how many one thing has in scheduler and gateway.
func (s snapshot) printGoroutines(out io.Writer, thing string) {
	fmt.Fprintf(out, "density_%s_goroutines_scheduler=%.2f\n", thing, float64(s.scheduler.Goroutines)/100)
	fmt.Fprintf(out, "density_%s_goroutines_gateway=%.2f\n", thing, float64(s.gateway.Goroutines)/100)
}

// printHost prints what one thing takes in this process.
func (s snapshot) printHost(out io.Writer, thing string) {
	fmt.Fprintf(out, "density_%s_bytes_host=%d\ndensity_%s_resident_host=%d\n", thing, s.host.Go, thing, s.host.Resident)
}

// isNear reports whether nothing has changed but a hundredth.
func (s snapshot) isNear(other snapshot) bool {
	near := func(a, b int64) bool { return max(a-b, b-a) <= max(a, b)/100 }
	return near(s.scheduler.Go, other.scheduler.Go) && near(s.gateway.Go, other.gateway.Go)
}

// spent is the CPU time of the processes.
type spent struct{ scheduler, gateway time.Duration }

// printShare prints what was spent since before, in percent of a core. The stage is a prefix.
func (s spent) printShare(out io.Writer, stage string, before spent, in time.Duration) {
	share := func(now, before time.Duration) float64 { return 100 * float64(now-before) / float64(in) }
	fmt.Fprintf(out, "density_%scpu_percent_scheduler=%.1f\n", stage, share(s.scheduler, before.scheduler))
	fmt.Fprintf(out, "density_%scpu_percent_gateway=%.1f\n", stage, share(s.gateway, before.gateway))
}
