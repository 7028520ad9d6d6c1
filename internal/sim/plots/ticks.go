package plots

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// logTicks marks powers of ten, or of two, and what lies between unlabelled.
type logTicks struct{ powersOfTwo bool }

// Ticks implements plot.Ticker.
func (t logTicks) Ticks(low, high float64) []plot.Tick {
	base := 10.0
	if t.powersOfTwo {
		base = 2
	}
	first := int(math.Floor(math.Log(low)/math.Log(base) + 1e-9))
	last := int(math.Ceil(math.Log(high)/math.Log(base) - 1e-9))
	every := max(1, (last-first)/10)
	var ticks []plot.Tick
	for exponent := first; exponent <= last; exponent++ {
		value := math.Pow(base, float64(exponent))
		label := ""
		if (exponent-first)%every == 0 {
			label = strconv.FormatFloat(value, 'f', -1, 64)
		}
		ticks = append(ticks, plot.Tick{Value: value, Label: label})
		for between := 2.0; base == 10 && between < 10; between++ {
			ticks = append(ticks, plot.Tick{Value: between * value})
		}
	}
	// Only what lies on the axis is drawn, and a short one needs more labels.
	var shown []plot.Tick
	labels := 0
	for _, tick := range ticks {
		if tick.Value >= low*(1-1e-9) && tick.Value <= high*(1+1e-9) {
			shown = append(shown, tick)
			if tick.Label != "" {
				labels++
			}
		}
	}
	for i := range shown {
		if labels < 2 && isOneOf(shown[i].Value, 1, 2, 5) {
			shown[i].Label = strconv.FormatFloat(shown[i].Value, 'g', 3, 64)
		}
	}
	return shown
}

// isOneOf tells whether a value is a power of ten times one of the digits.
func isOneOf(value float64, digits ...float64) bool {
	leading := value / math.Pow(10, math.Floor(math.Log10(value)+1e-9))
	for _, d := range digits {
		if math.Abs(leading-d) < 1e-6 {
			return true
		}
	}
	return false
}

// evenTicks marks a linear axis at some five round values.
type evenTicks struct{}

// Ticks implements plot.Ticker.
func (evenTicks) Ticks(low, high float64) []plot.Tick {
	if !(high > low) {
		return []plot.Tick{{Value: low, Label: strconv.FormatFloat(low, 'g', 4, 64)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, times := range []float64{5, 2} {
		if step*times <= (high-low)/4 {
			step *= times
			break
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(low/step - 1e-9); n*step <= high+step*1e-9; n++ {
		digits := max(0, int(-math.Floor(math.Log10(step))))
		value := n*step + 0 // no negative zero
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', digits, 64)})
	}
	return ticks
}
