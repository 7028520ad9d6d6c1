package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// release is a folder with the programs of one release.
type release string

func (r release) program(name string) string { return filepath.Join(string(r), name) }

// skew is two releases that meet in the lab.
type skew struct {
	older, newer release
	// replaced are instances that an update or its reversal has cost.
	replaced int
}

// rows are the ways in which releases meet, in an order in which each begins where the
// one before has ended.
func (k *skew) rows() []row {
	return []row{
		{id: "K1", fault: "an update while agents of the older release run calls", allow: nothing(), run: k.update},
		{id: "K2", fault: "agents of both releases, one taking the place of another", allow: nothing(), run: k.renew},
		{id: "K3", fault: "the owner killed among schedulers of both releases", allow: nothing(), run: k.mixed},
		{id: "K4", fault: "a rollback while agents of the newer release run calls", allow: nothing(), run: k.rollBack},
	}
}

// run runs all of it, and prints one line for each row and one for all.
func (k *skew) run(ctx context.Context, r *runner, out io.Writer) (status int, err error) {
	if err := k.begin(ctx, r); err != nil {
		return 1, err
	}
	var total verdict.Report
	for _, row := range k.rows() {
		ctx, cancel := context.WithTimeout(ctx, rowWithin)
		report, notes, took := k.row(ctx, r, row)
		cancel()
		r.print(row, report, notes, took)
		total.Add(report)
	}
	fmt.Fprintf(out, "lost=%d twice=%d wrong_no=%d replaced=%d calls=%d\n", total.Lost, total.Duplicated, total.WrongNo, k.replaced, total.Calls)
	if !total.Kept() || k.replaced > 0 {
		status = 1
	}
	return status, nil
}

// row is runner.row without what the lab holds: metrics have other names in other
// releases.
func (k *skew) row(ctx context.Context, r *runner, row row) (report verdict.Report, notes []string, took time.Duration) {
	began := time.Now()
	s, err := r.newEnv(ctx, row.id)
	if err != nil {
		return verdict.Report{Faults: []string{err.Error()}}, nil, 0
	}
	defer s.etcd.Close()
	err = row.run(ctx, s)
	err = errors.Join(err, s.heal(ctx))
	report, readErr := r.judge(s, row.allow)
	report.Faults = append(report.Faults, r.epochs.finding(false)...)
	if err = errors.Join(err, readErr); err != nil {
		report.Faults = append(report.Faults, strings.Split(err.Error(), "\n")...)
	}
	return report, s.notes, time.Since(began)
}

// begin puts the older release in the place of everything.
func (k *skew) begin(ctx context.Context, r *runner) error {
	s, err := r.newEnv(ctx, "older")
	if err != nil {
		return err
	}
	defer s.etcd.Close()
	s.Kubelet.UseAgent(k.older.program("podagent"))
	if err := k.become(ctx, s, k.older, programs(s)); err != nil {
		return err
	}
	for _, function := range []string{work, again} {
		if err := s.deletePods(ctx, function); err != nil {
			return err
		}
	}
	if err := s.recover(ctx); err != nil {
		return err
	}
	return r.passed(s)
}

// become restarts members as a release, one after the other.
func (k *skew) become(ctx context.Context, s *faultEnv, to release, members []*lab.Member) error {
	for _, m := range members {
		m.Use(to.program("windlass"))
		if err := m.Restart(ctx); err != nil {
			return err
		}
		sleep.For(ctx, time.Second) // balancers must know it before the next one goes
	}
	return nil
}

// settled is how long a controller that takes over looks around before it decides, and
// some more.
const settled = 10 * time.Second

// keeping counts the instances that are gone when do has ended.
func (k *skew) keeping(ctx context.Context, s *faultEnv, do func() error) error {
	before := s.Kubelet.PodsOf(work)
	err := do()
	sleep.For(ctx, settled)
	after := s.Kubelet.PodsOf(work)
	replaced := 0
	for _, pod := range before {
		if !slices.Contains(after, pod) {
			replaced++
		}
	}
	k.replaced += replaced
	s.note("replaced=%d", replaced)
	return errors.Join(err, k.oneRevision(ctx, s))
}

// oneRevision holds every revision but the first against Windlass: nobody has changed a
// template.
func (k *skew) oneRevision(ctx context.Context, s *faultEnv) error {
	var all v1alpha1.FunctionRevisionList
	if err := s.Cluster.Objects.List(ctx, &all); err != nil {
		return err
	}
	s.note("revisions=%d", len(all.Items))
	for _, r := range all.Items {
		s.holds(r.Spec.Number == 1, "revision %s was made, and no template has changed", r.Name)
	}
	return nil
}

// programs are those that an update replaces, in the order in which it does.
func programs(s *faultEnv) []*lab.Member {
	return append(append(slices.Clone(s.Schedulers), s.Gateways...), s.Controller)
}

// update changes the definitions first, as a chart does: a field gets a default, and there
// is another one with a default. What there was is read with both from then on.
func (k *skew) update(ctx context.Context, s *faultEnv) error {
	return k.keeping(ctx, s, func() error {
		err := s.under(ctx, toWork, func() error {
			if err := s.Cluster.Redefine(ctx, func(template map[string]any) {
				template["protocol"].(map[string]any)["default"] = string(v1alpha1.ProtocolHTTP)
				template["later"] = map[string]any{"type": "string", "default": "said"}
			}); err != nil {
				return err
			}
			return k.become(ctx, s, k.newer, programs(s))
		})
		return errors.Join(err, k.announce(ctx, s, 1))
	})
}

// renew is what happens to agents as time goes by. Those of the function again stay.
func (k *skew) renew(ctx context.Context, s *faultEnv) error {
	s.Kubelet.UseAgent(k.newer.program("podagent"))
	err := s.under(ctx, toWork, func() error { return s.deletePods(ctx, work) })
	return errors.Join(err, k.announce(ctx, s, 2))
}

// announce notes of which releases the agents are, as schedulers tell it, and holds it
// against the lab if those are not as many as they should be: then both run the same.
func (k *skew) announce(ctx context.Context, s *faultEnv, releases int) error {
	found := make(map[string]int)
	for _, m := range s.Schedulers {
		families, err := readMetrics(ctx, s.MetricsURL(m))
		if err != nil {
			return err
		}
		for _, metric := range families["windlass_agents"].GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "release" {
					found[label.GetValue()] += int(metric.GetGauge().GetValue())
				}
			}
		}
	}
	s.note("agents=%v", found)
	s.holds(len(found) == releases, "agents are of %d releases, %v, and should be of %d", len(found), found, releases)
	return nil
}

func (k *skew) mixed(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		if err := k.become(ctx, s, k.older, s.Schedulers[:1]); err != nil {
			return err
		}
		return s.withOwner(ctx, func(owner *lab.Member) error {
			owner.Kill()
			return owner.Revive(ctx)
		})()
	})
}

func (k *skew) rollBack(ctx context.Context, s *faultEnv) error {
	return k.keeping(ctx, s, func() error {
		return s.under(ctx, toWork, func() error {
			back := programs(s)
			slices.Reverse(back)
			return k.become(ctx, s, k.older, back)
		})
	})
}
