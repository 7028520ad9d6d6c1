package processors

const (
	// busy is the part of its processors above which a program gets more. Work then waits for
	// a processor about as often as it finds one.
	busy = 0.75
	// spare is the part of one processor fewer below which a program could do with it. It is
	// less than busy, so that no constant use makes the number go up and down.
	spare = 0.5
	// calmLooks is how many looks in a row must find that.
	calmLooks = 10
)

// Width is how many processors a program has. The zero Width has one.
type Width struct {
	more int // processors beyond the first
	calm int // the last looks that found one too many
}

// Processors is their number.
func (w *Width) Processors() int { return w.more + 1 }

// Look takes how many cores the program has wanted since the last look, on average, and returns how
// many processors it gets now: at most as many as given, and at least one. A program that is busy
// gets twice as many at once, and one that is calm loses one after a second of looks.
func (w *Width) Look(wanted float64, most int) int {
	now := w.Processors()
	switch {
	case wanted > busy*float64(now):
		w.more, w.calm = 2*now-1, 0
	case wanted < spare*float64(now-1):
		if w.calm++; w.calm >= calmLooks {
			w.more, w.calm = w.more-1, 0
		}
	default:
		w.calm = 0
	}
	w.more = max(min(w.more, most-1), 0)
	return w.Processors()
}
