package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/windlass-dev/windlass/internal/bench/measure"
	"github.com/windlass-dev/windlass/internal/bench/peers"
)

// stopWithin is how long a process may take to end by itself.
const stopWithin = 10 * time.Second

// site is a scheduler, a gateway, and the agents.
type site struct {
	options            options
	dir                string
	fleet              *fleet
	scheduler, gateway *child
}

// newSite starts scheduler and gateway, without functions. Whatever fails later is told to broke.
func newSite(o options, dir string, broke context.CancelCauseFunc) (*site, error) {
	certificates := ""
	if o.secure {
		certificates = certificatesDir(dir, gatewayRole)
		if err := writeCertificates(dir); err != nil {
			return nil, err
		}
	}
	agents, err := newFleet(o, certificates, broke)
	if err != nil {
		return nil, err
	}
	s := &site{options: o, dir: dir, fleet: agents}
	if s.scheduler, err = start(schedulerRole, dir, ""); err != nil {
		return nil, err
	}
	agents.scheduler = s.scheduler.ready.Wire
	go s.scheduler.orders(agents.obey)
	if s.gateway, err = start(gatewayRole, dir, s.scheduler.ready.Wire); err != nil {
		s.scheduler.stop()
		return nil, err
	}
	return s, nil
}

func writeCertificates(dir string) error {
	authority, err := measure.NewAuthority()
	if err != nil {
		return err
	}
	return errors.Join(
		authority.Write(certificatesDir(dir, schedulerRole), domain.Scheduler()),
		authority.Write(certificatesDir(dir, gatewayRole), domain.Gateway()))
}

func (s *site) stop() {
	s.gateway.stop()
	s.scheduler.stop()
}

// child is the process of a role.
type child struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *json.Decoder
	ready  peers.Ready
	http   *http.Client
}

// start starts this program in a role, and returns when it can be used.
func start(role, dir, scheduler string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-"+roleFlag, role, "-"+dirFlag, dir, "-"+schedulerFlag, scheduler)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{name: role, cmd: cmd, stdin: stdin, stdout: json.NewDecoder(stdout)}
	// A connection that stays open would be memory that a later figure has and an earlier has not.
	c.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if err := c.stdout.Decode(&c.ready); err != nil {
		c.stop()
		return nil, fmt.Errorf("the %s did not start: %w", role, err)
	}
	return c, nil
}

// orders passes on the orders of a scheduler until it ends.
func (c *child) orders(obey func(order)) {
	for {
		var o order
		if c.stdout.Decode(&o) != nil {
			return
		}
		obey(o)
	}
}

// ask asks the process, and decodes its answer.
func (c *child) ask(ctx context.Context, method, path string, answer any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.ready.Ops+path, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("the %s: %w", c.name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("the %s: %s %s: %s", c.name, method, path, text)
	}
	if file, is := answer.(io.Writer); is {
		_, err = io.Copy(file, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// stop ends the process.
func (c *child) stop() {
	_ = c.stdin.Close()
	kill := time.AfterFunc(stopWithin, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	// Its exit code says nothing that its output does not.
	_ = c.cmd.Wait()
}
