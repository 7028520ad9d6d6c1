package console

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Config selects what is shown, and how.
type Config struct {
	// Level is the lowest level that is shown. Debug also shows messages that are not in the
	// table.
	Level slog.Level
	// Colours paints lines for a terminal.
	Colours bool
	// Home is the namespace whose functions are named without it.
	Home string
}

// Console is a slog.Handler. It may be used by many goroutines at a time.
type Console struct {
	level slog.Level
	with  []slog.Attr
	// screen is shared with what WithAttrs makes.
	screen *screen
}

// screen writes one line at a time.
type screen struct {
	mu   sync.Mutex
	to   io.Writer
	look style
}

// New makes a Console that writes to a terminal or a file.
func New(to io.Writer, c Config) *Console {
	return &Console{level: c.Level, screen: &screen{to: to, look: style{colours: c.Colours, home: c.Home}}}
}

// Enabled implements slog.Handler.
func (c *Console) Enabled(_ context.Context, level slog.Level) bool { return level >= c.level }

// Handle implements slog.Handler.
func (c *Console) Handle(_ context.Context, record slog.Record) error {
	if e, shown := read(record, c.with, c.level); shown {
		return c.screen.show(e)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (c *Console) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *c
	with.with = append(slices.Clip(c.with), attrs...)
	return &with
}

// WithGroup implements slog.Handler. It ignores groups.
func (c *Console) WithGroup(string) slog.Handler { return c }

// Printed shows a line that a function, named NAMESPACE/NAME, has written.
func (c *Console) Printed(function, cid string, at time.Time, text string) {
	// There is nobody to tell that the terminal is gone.
	_ = c.screen.show(event{at: at, function: function, instance: cid, mark: printed, text: text})
}

func (s *screen) show(e event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := io.WriteString(s.to, s.look.render(e))
	return err
}
