package agentenv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Protocols of Config.Protocol; the same words as in the API, which the agent
// does not link.
const (
	ProtocolHTTP          = "HTTP"
	ProtocolLambdaRuntime = "LambdaRuntime"
)

// File descriptors that an agent inherits beside its input, output and errors.
const (
	// EndFD is that of EndInherited.
	EndFD = 3
	// ListenerFD is that of ListenerInherited.
	ListenerFD = 4
)

// MaxEnd bounds the bytes that are read from EndFD.
const MaxEnd = 64 << 10

// Config is what an agent needs to know.
type Config struct {
	// Spare says that the instance has no function yet. Owner is then the scheduler that
	// assigns it to one, and Protocol is LambdaRuntime. Everything that belongs to a function
	// is empty and comes with the assignment: Class, Slice, FunctionUID, Function, Revision,
	// CID, Concurrency, BackoffAfter and IdleTimeout.
	Spare bool
	// Scheduler is the address of any scheduler, host:port, which knows where
	// the function's owner is.
	Scheduler string
	// Owner is the address that is tried first, if it is not empty.
	Owner string
	// Node is the address of the node agent, host:port; empty for none. NodeTokenFile holds the
	// proof for it, if that is another one than for schedulers.
	Node, NodeTokenFile string
	// Class is what the function's class of scheduling is, and Slice after how much processor time
	// its calls yield; empty and 0 for what other functions have. They are for the node agent.
	Class string
	Slice time.Duration
	// FunctionUID, Function (namespace/name) and Revision, the name of the revision that it
	// was started for, identify the instance's function.
	FunctionUID string
	Function    string
	Revision    string
	// CID is the instance's id.
	CID string
	// Token is the instance's proof. If it is empty, TokenFile holds one, which
	// is replaced before it expires.
	Token     string
	TokenFile string
	// CA is the certificate authority of schedulers and gateways, in PEM. Without it the wire
	// is not encrypted.
	CA string
	// TLSDomain is what the names in their certificates end in. It goes with CA.
	TLSDomain string
	// DrainListen is the address at which GET /drained answers once the
	// instance has ended its calls and takes no more; empty for none.
	DrainListen string
	// Protocol is how to speak with the function.
	Protocol string
	// Port on 127.0.0.1: with HTTP the function listens there, with
	// LambdaRuntime the agent does.
	Port int
	// ListenerInherited says that the agent's parent listens at Port and passes the listener
	// as ListenerFD. So a function that starts with the agent finds the port open, whichever
	// is faster.
	ListenerInherited bool
	// EndInherited says that the agent's parent watches the function and reports its end on
	// EndFD: the first line says how it ended, followed by the last lines that the function
	// wrote. A parent that ends itself writes nothing.
	EndInherited bool
	// Concurrency is how many calls the function runs at a time, at least 1.
	Concurrency int
	// StartupTimeout bounds the time until the function can be called; of a
	// spare instance, until its runtime waits for the assignment.
	StartupTimeout time.Duration
	// BackoffAfter is how long to wait for a call before going quiet: closing connections that
	// are not used, giving memory back, and pinging less often. IdleTimeout is how much longer to
	// wait before asking to leave.
	BackoffAfter time.Duration
	IdleTimeout  time.Duration
}

// field ties one variable to one field of a Config.
type field struct {
	name string
	get  func(*Config) string
	set  func(*Config, string) error
	// assigned says that a spare instance learns it by its assignment.
	assigned bool
}

// assigned is f for a field that a spare instance gets with its assignment.
func assigned(f field) field {
	f.assigned = true
	return f
}

func text(name string, at func(*Config) *string) field {
	return field{name: name,
		get: func(c *Config) string { return *at(c) },
		set: func(c *Config, s string) error {
			if s == "" {
				return errors.New("is missing")
			}
			*at(c) = s
			return nil
		}}
}

func optional(name string, at func(*Config) *string) field {
	return field{name: name,
		get: func(c *Config) string { return *at(c) },
		set: func(c *Config, s string) error { *at(c) = s; return nil }}
}

func flag(name string, at func(*Config) *bool) field {
	return field{name: name,
		get: func(c *Config) string {
			if *at(c) {
				return "true"
			}
			return ""
		},
		set: func(c *Config, s string) error {
			if s != "" && s != "true" {
				return fmt.Errorf("%q is not true: leave it out for no", s)
			}
			*at(c) = s != ""
			return nil
		}}
}

func number[T int | int64](name string, least T, at func(*Config) *T) field {
	return field{name: name,
		get: func(c *Config) string { return strconv.FormatInt(int64(*at(c)), 10) },
		set: func(c *Config, s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || T(n) < least {
				return fmt.Errorf("%q is not a whole number of at least %d", s, least)
			}
			*at(c) = T(n)
			return nil
		}}
}

func duration(name string, at func(*Config) *time.Duration) field {
	return field{name: name,
		get: func(c *Config) string { return at(c).String() },
		set: func(c *Config, s string) error {
			d, err := time.ParseDuration(s)
			if err != nil || d <= 0 {
				return fmt.Errorf("%q is not a positive duration such as 10s", s)
			}
			*at(c) = d
			return nil
		}}
}

// optionalDuration is a duration that is 0 if the variable is not there.
func optionalDuration(name string, at func(*Config) *time.Duration) field {
	f := duration(name, at)
	required := f.set
	f.get = func(c *Config) string {
		if *at(c) == 0 {
			return ""
		}
		return at(c).String()
	}
	f.set = func(c *Config, s string) error {
		if s == "" {
			*at(c) = 0
			return nil
		}
		return required(c, s)
	}
	return f
}

var fields = []field{
	flag("WINDLASS_SPARE", func(c *Config) *bool { return &c.Spare }),
	text("WINDLASS_SCHEDULER", func(c *Config) *string { return &c.Scheduler }),
	optional("WINDLASS_OWNER", func(c *Config) *string { return &c.Owner }),
	optional("WINDLASS_NODE", func(c *Config) *string { return &c.Node }),
	optional("WINDLASS_NODE_TOKEN_FILE", func(c *Config) *string { return &c.NodeTokenFile }),
	assigned(optional("WINDLASS_CLASS", func(c *Config) *string { return &c.Class })),
	assigned(optionalDuration("WINDLASS_SLICE", func(c *Config) *time.Duration { return &c.Slice })),
	assigned(text("WINDLASS_FUNCTION_UID", func(c *Config) *string { return &c.FunctionUID })),
	assigned(text("WINDLASS_FUNCTION", func(c *Config) *string { return &c.Function })),
	assigned(text("WINDLASS_REVISION", func(c *Config) *string { return &c.Revision })),
	assigned(text("WINDLASS_INSTANCE", func(c *Config) *string { return &c.CID })),
	optional("WINDLASS_TOKEN", func(c *Config) *string { return &c.Token }),
	optional("WINDLASS_TOKEN_FILE", func(c *Config) *string { return &c.TokenFile }),
	optional("WINDLASS_CA", func(c *Config) *string { return &c.CA }),
	optional("WINDLASS_TLS_DOMAIN", func(c *Config) *string { return &c.TLSDomain }),
	optional("WINDLASS_DRAIN_LISTEN", func(c *Config) *string { return &c.DrainListen }),
	text("WINDLASS_PROTOCOL", func(c *Config) *string { return &c.Protocol }),
	number("WINDLASS_PORT", 1, func(c *Config) *int { return &c.Port }),
	flag("WINDLASS_LISTENER_INHERITED", func(c *Config) *bool { return &c.ListenerInherited }),
	flag("WINDLASS_END_INHERITED", func(c *Config) *bool { return &c.EndInherited }),
	assigned(number("WINDLASS_CONCURRENCY", 1, func(c *Config) *int { return &c.Concurrency })),
	duration("WINDLASS_STARTUP_TIMEOUT", func(c *Config) *time.Duration { return &c.StartupTimeout }),
	assigned(duration("WINDLASS_BACKOFF_AFTER", func(c *Config) *time.Duration { return &c.BackoffAfter })),
	assigned(duration("WINDLASS_IDLE_TIMEOUT", func(c *Config) *time.Duration { return &c.IdleTimeout })),
}

// Environ is the configuration as NAME=value pairs, without empty values and without those
// that a spare instance gets with its assignment.
func (c Config) Environ() []string {
	env := make([]string, 0, len(fields))
	for _, f := range fields {
		if value := f.get(&c); value != "" && !(c.Spare && f.assigned) {
			env = append(env, f.name+"="+value)
		}
	}
	return env
}

// Parse reads a configuration by means of getenv. Its error names every
// variable that is missing or wrong.
func Parse(getenv func(string) string) (Config, error) {
	var c Config
	var errs []error
	for _, f := range fields { // WINDLASS_SPARE is the first of them
		if err := f.read(&c, getenv(f.name)); err != nil {
			errs = append(errs, fmt.Errorf("%s %w", f.name, err))
		}
	}
	return c, errors.Join(append(errs, c.contradictions()...)...)
}

func (f field) read(c *Config, value string) error {
	switch {
	case !c.Spare || !f.assigned:
		return f.set(c, value)
	case value != "":
		return errors.New("must not be set: a spare instance (WINDLASS_SPARE) learns it by its assignment")
	}
	return nil
}

// contradictions are errors about valid values that contradict each other.
func (c Config) contradictions() (errs []error) {
	if (c.Token == "") == (c.TokenFile == "") {
		errs = append(errs, errors.New("WINDLASS_TOKEN or WINDLASS_TOKEN_FILE must be set, and not both"))
	}
	if c.NodeTokenFile != "" && c.Node == "" {
		errs = append(errs, errors.New("WINDLASS_NODE must be set with WINDLASS_NODE_TOKEN_FILE: the token is for the node agent"))
	}
	if (c.CA == "") != (c.TLSDomain == "") {
		errs = append(errs, errors.New("WINDLASS_CA and WINDLASS_TLS_DOMAIN must be set both, or neither"))
	}
	if c.Protocol != "" && c.Protocol != ProtocolHTTP && c.Protocol != ProtocolLambdaRuntime {
		errs = append(errs, fmt.Errorf("WINDLASS_PROTOCOL %q is neither %s nor %s", c.Protocol, ProtocolHTTP, ProtocolLambdaRuntime))
	}
	if c.Spare && c.Protocol != ProtocolLambdaRuntime {
		errs = append(errs, fmt.Errorf("WINDLASS_PROTOCOL must be %s with WINDLASS_SPARE: code cannot be handed over by %s", ProtocolLambdaRuntime, ProtocolHTTP))
	}
	if c.ListenerInherited && c.Protocol == ProtocolHTTP {
		errs = append(errs, fmt.Errorf("WINDLASS_LISTENER_INHERITED must not be set with WINDLASS_PROTOCOL %s: there the function listens, and not the agent", ProtocolHTTP))
	}
	if c.Spare && c.Owner == "" {
		errs = append(errs, errors.New("WINDLASS_OWNER must be set with WINDLASS_SPARE: only the scheduler that made a spare instance assigns it"))
	}
	if namespace, name, _ := strings.Cut(c.Function, "/"); c.Function != "" && (namespace == "" || name == "") {
		errs = append(errs, fmt.Errorf("WINDLASS_FUNCTION %q is not namespace/name", c.Function))
	}
	if c.Port > 65535 {
		errs = append(errs, fmt.Errorf("WINDLASS_PORT \"%d\" is not a port, 1 to 65535", c.Port))
	}
	return errs
}
