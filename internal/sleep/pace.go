package sleep

import "time"

// Pace bounds how fast something happens, such as how fast the messages of a stream are read, so that
// one stream cannot keep a program from hearing others.
type Pace struct {
	// Every is the time between two events in the long run, and Burst how many more may come at once.
	Every time.Duration
	Burst int

	begun bool
	due   time.Duration // when the next event would come if they came evenly
}

// Next is how long to wait after an event before the next one. Times are since any beginning.
func (p *Pace) Next(now time.Duration) time.Duration {
	if earliest := now - time.Duration(p.Burst)*p.Every; !p.begun || p.due < earliest {
		p.begun, p.due = true, earliest
	}
	p.due += p.Every
	return max(0, p.due-now)
}
