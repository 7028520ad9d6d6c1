package fpcs

import (
	"math"
	"time"
)

// Horizon plans for the time that a new instance needs to be there.
func Horizon(s Snapshot, p Params) Decision {
	d := Decision{Why: ReasonNoDemand, Next: estimateRate(s, p)}
	d.Rate = rateOf(d.Next)
	d.Horizon = max(p.Tick, s.MeanStart)
	waiting, total := s.Waiting(), s.Created+s.Creating
	if waiting <= 0 && s.Creating == 0 && s.Arrived == s.Memory.Arrived {
		return d
	}
	if waiting > 0 && total == 0 && (s.MeanExecution <= 0 || d.Rate == 0) {
		d.Create, d.Required, d.Why = 1, 1, ReasonFirst
		return d
	}
	if s.MeanExecution <= 0 {
		if n := min(total, waiting-s.Creating); n > 0 {
			d.Create, d.Why = n, ReasonRamp
		}
		return d
	}
	D := s.MeanExecution.Seconds()
	S := s.MeanStart.Seconds()
	a := d.Rate * D
	R := max(p.Tick.Seconds(), S, math.Sqrt(D))
	b := float64(waiting) + d.Rate*S - (float64(s.Created)+float64(s.Creating)/2)*S/D
	need := a + 1.5*math.Sqrt(a)
	d.Why = ReasonRate
	if drain := a + b*D/R; drain > need {
		need = drain
		d.Why = ReasonBacklog
	}
	d.Required = max(1, int(math.Ceil(need-0.2)))
	d.Create = max(0, d.Required-total)
	if d.Create == 0 {
		d.Why = ReasonEnough
	}
	return d
}

func estimateRate(s Snapshot, p Params) Memory {
	m := s.Memory
	n := float64(s.Arrived - m.Arrived)
	if !m.Seen {
		m.Seen, m.Arrived = true, s.Arrived
		return m
	}
	fade := math.Exp(-s.Elapsed.Seconds() / 5)
	m.Calls = m.Calls*fade + n
	m.Span = time.Duration(float64(m.Span)*fade) + s.Elapsed
	m.Arrived = s.Arrived
	return m
}

func rateOf(m Memory) float64 {
	if m.Span <= 0 {
		return 0
	}
	return m.Calls / m.Span.Seconds()
}
