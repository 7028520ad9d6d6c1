package bench

import (
	"fmt"
	"io"
)

// progressEvery is how often progress is printed where lines cannot be
// rewritten.
const progressEvery = 5

// ProgressPrinter returns a function for Deps.Progress that prints one line to
// w. On a terminal it rewrites that line; elsewhere it prints a new one for
// every fifth report and for the last. Errors of writing are ignored: progress
// is a courtesy.
func ProgressPrinter(w io.Writer, terminal bool) func(Progress) {
	reports := 0
	return func(p Progress) {
		reports++
		switch {
		case terminal && p.Ended:
			fmt.Fprintf(w, "\r\x1b[K%s\n", p)
		case terminal:
			fmt.Fprintf(w, "\r\x1b[K%s", p)
		case p.Ended || reports%progressEvery == 0:
			fmt.Fprintln(w, p)
		}
	}
}

// String is the progress as one line of less than 100 columns.
func (p Progress) String() string {
	line := fmt.Sprintf("%3.0f s of %.0f s: sent %d of %d, done %d, in flight %d, errors %d",
		p.Elapsed.Seconds(), p.Length.Seconds(), p.Sent, p.Calls, p.Done, p.InFlight, p.Errors)
	if p.NotSent > 0 {
		line += fmt.Sprintf(" (%d not sent)", p.NotSent)
	}
	return line
}
