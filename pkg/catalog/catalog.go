package catalog

import (
	"context"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// Event says that a function was added or changed, or that it is gone.
type Event struct {
	// Key names the function.
	Key invocation.FunctionKey
	// UID of the function; a function that is deleted and created again has
	// another one.
	UID string
	// Entry is the function and its units, or nil when it is gone. It is shared and must
	// not be changed.
	Entry *rollout.Entry
	// Packed is Entry for watchers that keep it while they do not use it; nil if that cannot be.
	Packed *Packed[rollout.Entry]
}

// Reader lists which functions exist, and which units they have. What it returns is
// shared, has its defaults, is valid, and must not be changed.
type Reader interface {
	// Get returns the function of that name.
	Get(key invocation.FunctionKey) (*rollout.Entry, bool)
	// List returns all functions, in the order of their keys.
	List() []*rollout.Entry
	// Watch calls handle for every function that exists and then for every
	// change, one call at a time and in order for each key; changes that
	// follow each other quickly may be reported as one. A function that
	// gave way to another of the same name is reported as gone first. Watch
	// returns nil when ctx ends, and an error only if it can watch no
	// longer.
	Watch(ctx context.Context, handle func(Event)) error
}
