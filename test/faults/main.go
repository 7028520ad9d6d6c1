// Command faults breaks a Windlass that is made of real programs, and says
// whether it kept its promises: the fault lab.
//
// Each row of its table is one fault of docs/reliability.md. It is put upon a
// Windlass under load, and taken back; then package verdict compares what the
// callers were told with what the functions' run log says was executed, and the
// row's own expectations with what happened. A row fails for a promise that was
// broken, never for being slow: times are printed.
//
//	go run ./test/faults                    every row
//	go run ./test/faults -rows F2,F21-F24   some
//	go run ./test/faults -list              what there is
//	go run ./test/faults -labs 2            every row, in two labs at once
//	go run ./test/faults -figures all       the figures, with larger counts
//	go run ./test/faults -record FILE       every row, kept as a file
//	go run ./test/faults -older DIR         an older release meets this one
//	go run ./test/faults -traffic           calls are parted among revisions, and given back
//	go run ./test/faults -page docs         the pages that are made of such files
//
// It needs Linux, root, iptables, and the programs of make cluster-binaries. No
// process, network or mount is left behind, however it ends; see package lab. If it
// is killed, its files stay below the folder for temporary ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/test/lab"
)

// options are what the command line says.
type options struct {
	rows    string
	seed    uint64
	rate    float64
	scale   float64
	labs    int
	keep    bool
	list    bool
	figures string
	record  string
	page    string
	older   string
	traffic bool
}

func main() {
	var o options
	flag.StringVar(&o.rows, "rows", "", "only these `rows`, such as F2,F21-F24")
	flag.Uint64Var(&o.seed, "seed", 1, "what all chance comes from")
	flag.Float64Var(&o.rate, "rate", 150, "`calls` that begin in a second")
	flag.Float64Var(&o.scale, "scale", 1, "`factor` on how often and how long figures are measured")
	flag.IntVar(&o.labs, "labs", 1, "`number` of labs that share the rows at the same time, of which each takes a core")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs and say where")
	flag.BoolVar(&o.list, "list", false, "list the rows and end")
	flag.StringVar(&o.figures, "figures", "", "measure these `figures`, or all, instead of running rows")
	flag.StringVar(&o.record, "record", "", "keep what became of each row in this `file`, too")
	flag.StringVar(&o.page, "page", "", "make this `folder`'s reliability.md and results/faults.md from its results/faults-*.json, instead of running rows")
	flag.StringVar(&o.older, "older", "", "let the programs in this `folder`, windlass and podagent of an older release, meet this one's, instead of running rows")
	flag.BoolVar(&o.traffic, "traffic", false, "measure how exactly and how soon calls are parted among revisions, instead of running rows")
	flag.Parse()
	if o.list {
		list(os.Stdout)
		return
	}
	if o.page != "" {
		if err := writePages(o.page); err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
			os.Exit(2)
		}
		return
	}
	status, err := o.main()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(2)
	}
	os.Exit(status)
}

// share is the variable that tells an inner process which of the labs it is.
const share = "WINDLASS_LAB_SHARE"

// main builds the programs and enters the labs, or is in one already.
func (o options) main() (status int, err error) {
	if dir, inside := lab.Inside(); inside {
		return o.inside(dir, os.Stdout)
	}
	if _, err := o.chosen(); err != nil {
		return 0, err
	}
	if o.figures != "" {
		if _, err := chooseFigures(o.figures); err != nil {
			return 0, err
		}
	}
	if o.labs < 1 || o.alone() {
		o.labs = 1
	}
	dir, remove, err := lab.Workspace("faults", o.keep)
	if err != nil {
		return 0, err
	}
	defer remove()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return o.enter(ctx, dir, os.Stdout)
}

// enter runs every lab and prints what they found in all.
func (o options) enter(ctx context.Context, dir string, out io.Writer) (status int, err error) {
	statuses, errs := make([]int, o.labs), make([]error, o.labs)
	var labs sync.WaitGroup
	for i := range o.labs {
		labs.Go(func() {
			statuses[i], errs[i] = lab.Enter(ctx, labDir(dir, i), fmt.Sprintf("%s=%d/%d", share, i, o.labs))
		})
	}
	labs.Wait()
	status = slices.Max(statuses)
	if err := errors.Join(errs...); err != nil || o.alone() {
		return status, err
	}
	var total summary
	for i := range o.labs {
		part, err := readSummary(labDir(dir, i))
		if err != nil {
			return status, err
		}
		total.add(part)
	}
	total.print(out, o.seed)
	if o.record != "" {
		err = writeRound(o.record, round{
			Commit: commit(), Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Labs: o.labs, Seed: o.seed, Rate: o.rate,
			Rows: total.Records,
		})
	}
	return status, err
}

// alone says that something else than rows runs, in one lab.
func (o options) alone() bool { return o.figures != "" || o.older != "" || o.traffic }

func labDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("lab-%d", i+1)) }

// inside runs the rows in the lab.
func (o options) inside(dir string, out io.Writer) (status int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := lab.Open(ctx, lab.Config{
		Dir: dir, Schedulers: 3, Gateways: 2, Nodes: 3, LeaseTTL: 10 * time.Second, Drain: 2 * time.Second,
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	r, err := newRunner(ctx, l, o, out)
	if err != nil {
		return 0, err
	}
	if o.figures != "" {
		return r.figures(ctx)
	}
	if o.traffic {
		return new(traffic).run(ctx, r, out)
	}
	if o.older != "" {
		k := &skew{older: release(o.older), newer: release(filepath.Dir(l.Config.Program("windlass")))}
		return k.run(ctx, r, out)
	}
	chosen, err := o.chosen()
	if err != nil {
		return 0, err
	}
	found, err := r.rows(ctx, shared(chosen, os.Getenv(share)))
	if err != nil {
		return 1, err
	}
	return found.status(), found.write(dir)
}
