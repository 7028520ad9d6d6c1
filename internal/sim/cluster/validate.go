package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Validate reports fields that are out of range.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("cluster: "+format, args...)) }
	if c.Length < 0 || c.Resolution < 0 {
		bad("Length is %v and Resolution %v; they must be at least 0", c.Length, c.Resolution)
	}
	if c.Decider == nil && c.Hash == nil {
		bad("Decider is missing; fpcs.ByName has some")
	}
	if c.Hash != nil && !slices.ContainsFunc(c.Nodes, func(n Nodes) bool { return n.From == 0 }) {
		bad("Nodes have none that is there from the beginning; calls cannot be pushed to nobody")
	}
	if h := c.Hash; h != nil && (h.Controllers < 1 || h.Slots < 1 || h.Remove < 0) {
		bad("Hash has %d controllers, %d slots and removes in %v; there must be at least 1, 1 and 0", h.Controllers, h.Slots, h.Remove)
	}
	c.validateGateways(bad)
	if len(c.Functions) == 0 {
		bad("Functions are none; there must be at least one")
	}
	for i, n := range c.Nodes {
		if n.Order != nil {
			c.validateOrder(i, n, bad)
		}
		if n.Count < 1 || n.From < 0 || n.Starts < 0 {
			bad("Nodes[%d] has Count %d, From %v and Starts %d; they must be at least 1, 0 and 0", i, n.Count, n.From, n.Starts)
		}
	}
	functions, endless := 0, false
	for i, f := range c.Functions {
		if f.Copies < 0 || f.Concurrency < 0 || f.Patience < 0 || f.Limits.Min < 0 || f.Limits.Max < 0 {
			bad("Functions[%d] has a negative field; all must be at least 0", i)
		}
		functions += max(1, f.Copies)
	}
	for i, cl := range c.Clients {
		if err := cl.validate(functions); err != nil {
			bad("Clients[%d]: %w", i, err)
		}
		endless = endless || cl.Calls == 0 && cl.Until == 0
	}
	for i, l := range c.Loads {
		if err := l.validate(functions); err != nil {
			bad("Loads[%d]: %w", i, err)
		}
		endless = endless || l.endless()
	}
	if c.Length == 0 && endless {
		bad("Length is 0, but some call for ever; give a Length, or the clients Calls, or them and the loads an Until")
	}
	return errors.Join(errs...)
}

// validateOrder reports nodes on which calls cannot ask for cores.
func (c Config) validateOrder(i int, n Nodes, bad func(format string, args ...any)) {
	if n.Capacity.CPU < 1 {
		bad("Nodes[%d] has an Order, and a Capacity of %v cores; it must be at least 1", i, n.Capacity.CPU)
		return
	}
	params := *n.Order
	params.Cores = int(n.Capacity.CPU)
	if err := params.Validate(); err != nil {
		bad("Nodes[%d] has an Order that is invalid: %w", i, err)
	}
	if c.Hash != nil {
		bad("Nodes[%d] has an Order, but Hash pushes calls to instances that do not ask; use one of both", i)
	}
}

// validateGateways reports fields about gateways that are out of range.
func (c Config) validateGateways(bad func(format string, args ...any)) {
	if c.Gateways < 0 || c.GatewayWork < 0 || c.MessageDelay < 0 || c.ReportEvery < 0 || c.MessageDelay > MaxMessageDelay {
		bad("Gateways is %d, GatewayWork %v, MessageDelay %v and ReportEvery %v; they must be at least 0, and MessageDelay at most %v",
			c.Gateways, c.GatewayWork, c.MessageDelay, c.ReportEvery, MaxMessageDelay)
	}
	if c.Gateways == 0 && (c.GatewayWork > 0 || c.MessageDelay > 0 || c.ReportEvery > 0) {
		bad("GatewayWork is %v, MessageDelay %v and ReportEvery %v, but Gateways is 0; give some", c.GatewayWork, c.MessageDelay, c.ReportEvery)
	}
	if c.Gateways > 0 && c.Hash != nil {
		bad("Gateways is %d, but Hash pushes calls past gateways; use one of both", c.Gateways)
	}
}

// within reports numbers of functions that do not exist.
func within(first, many, functions int) error {
	if last := first + max(1, many); first < 0 || many < 0 || last > functions {
		return fmt.Errorf("field First is %d and Functions %d, but there are %d functions; name ones that exist", first, many, functions)
	}
	return nil
}

func (c Clients) validate(functions int) error {
	switch {
	case c.Count < 1:
		return fmt.Errorf("field Count is %d; it must be at least 1", c.Count)
	case c.From < 0 || c.Within < 0 || c.Calls < 0 || c.Until < 0:
		return errors.New("field From, Within, Calls or Until is negative; they must be at least 0")
	}
	return within(c.First, c.Functions, functions)
}

func (p Poisson) validate(functions int) error {
	switch {
	case !(p.Rate > 0):
		return fmt.Errorf("field Rate is %v calls in a second; it must be more than 0", p.Rate)
	case p.From < 0 || p.Until < 0:
		return errors.New("field From or Until is negative; they must be at least 0")
	}
	return within(p.First, p.Functions, functions)
}

func (p Poisson) endless() bool { return p.Until == 0 }

func (g Given) validate(functions int) error {
	var before time.Duration
	for i, c := range g {
		if c.At < before {
			return fmt.Errorf("call %d is due at %v, before the one before it or the start; sort the calls", i, c.At)
		}
		if err := within(c.Function, 1, functions); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		before = c.At
	}
	return nil
}

func (g Given) endless() bool { return false }

func (t Trace) validate(functions int) error {
	for _, a := range t.Arrivals {
		number, known := t.Functions[a.Function]
		if !known {
			return fmt.Errorf("field Functions has no number for %q, which the trace calls", a.Function)
		}
		if err := within(number, 1, functions); err != nil {
			return fmt.Errorf("function %q: %w", a.Function, err)
		}
	}
	return t.Validate()
}

func (t Trace) endless() bool { return false }
