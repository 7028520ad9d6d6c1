package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// developer deploys functions whenever their files change.
type developer struct {
	deployer
	own *runner
}

func (d *developer) devCommand() *cobra.Command {
	flags := defaultUpFlags()
	flags.logCalls = string(gateway.LogAll)
	cmd := &cobra.Command{
		Use:   "dev [-f FILE|FOLDER ...]",
		Short: "Deploy functions, and again whenever their files change",
		Long: `Deploy the functions of manifests, deploy them again whenever the manifests or the
code change, and print what the functions print, until Ctrl-C.

If no Windlass runs with the data folder, dev starts one as "up" does, and
prints calls too. If one runs, or with --context, dev uses that.`,
		Example: `  windlass init hello && windlass dev -f hello
  windlass dev --context staging -f hello`,
		Args: noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if len(flags.files) == 0 {
				flags.files = []string{"."}
			}
			if slices.Contains(flags.files, "-") {
				return usagef("-f - cannot be watched; name a file or a folder")
			}
			return d.interruptible(cmd.Context(), func(ctx context.Context) error { return d.dev(ctx, flags) })
		}),
	}
	cmd.Flags().StringVar(&flags.listen, "listen", flags.listen, "`address` of the gateway, if dev runs one")
	cmd.Flags().StringVar(&flags.opsListen, "ops-listen", flags.opsListen, "`address` of the status page, health checks and metrics, if dev runs them")
	cmd.Flags().StringArrayVarP(&flags.files, "filename", "f", nil, "`file` or folder with manifests to deploy and watch (default: this folder); repeatable")
	cmd.Flags().StringVar(&flags.agent, "agent", "", "`path` of the agent's program (default: podagent beside this program)")
	return cmd
}

// dev deploys functions until ctx ends: to the Windlass that was named or runs, or else
// to one of its own.
func (d *developer) dev(ctx context.Context, flags upFlags) error {
	if d.flags.context != "" || d.flags.kubeconfig != "" {
		t, err := d.target(ctx)
		if err != nil {
			return err
		}
		return d.devWhileRead(ctx, t, flags.files)
	}
	dataDir, err := d.resolveDataDir()
	if err != nil {
		return err
	}
	var absent *localapi.NotRunningError
	switch err := localapi.NewClient(dataDir).Probe(ctx); {
	case err == nil:
		t := localTarget(dataDir)
		if err := errors.Join(d.suggestDataDir(dataDir), d.adopt(t)); err != nil {
			return err
		}
		return d.devWhileRead(ctx, t, flags.files)
	case !errors.As(err, &absent):
		return err
	}
	return d.devAlone(ctx, flags)
}

// devAlone runs a Windlass, whose console has all that there is to see.
func (d *developer) devAlone(ctx context.Context, flags upFlags) error {
	watch, err := watchManifests(flags.files)
	if err != nil {
		return err
	}
	defer watch.Close()
	config, err := d.own.upConfig(flags)
	if err != nil {
		return err
	}
	t := localTarget(config.DataDir)
	if err := d.adopt(t); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	ready := config.Ready
	config.Ready = func(info localapi.Info, applied []localapi.Applied) {
		ready(info, applied)
		watching.Go(func() { d.deployOnChange(ctx, watch, t, flags.files, nil) })
	}
	return d.own.programs.Up(ctx, config)
}

// devWhileRead ends when nobody reads what it prints any more: unlike a Windlass of its own, it
// serves nobody else.
func (d *developer) devWhileRead(ctx context.Context, t *target, files []string) error {
	return d.whileRead(func(ctx context.Context) error { return d.devWith(ctx, t, files) })(ctx)
}

// devWith uses a Windlass that runs, and follows the logs of the functions.
func (d *developer) devWith(ctx context.Context, t *target, files []string) error {
	watch, err := watchManifests(files)
	if err != nil {
		return err
	}
	defer watch.Close()
	manifests, err := readManifests(files, nil)
	if err != nil {
		return err
	}
	if err := d.deployManifests(ctx, t, manifests); err != nil {
		return err
	}
	follow := &follower{developer: d, t: t, followed: make(map[string]bool)}
	defer follow.running.Wait()
	follow.all(ctx, manifests)
	d.deployOnChange(ctx, watch, t, files, func(manifests []manifest) { follow.all(ctx, manifests) })
	return nil
}

// deployManifests deploys what deploy -f would, and refuses what that refuses.
func (d *developer) deployManifests(ctx context.Context, t *target, manifests []manifest) error {
	if err := d.enforceNamespace(manifests); err != nil {
		return err
	}
	if err := checkFor(t, manifests, true); err != nil {
		return err
	}
	return d.deploy(ctx, t, manifests, deployFlags{})
}

// follower prints the logs of functions of another Windlass.
type follower struct {
	*developer
	t       *target
	running sync.WaitGroup

	mu       sync.Mutex
	followed map[string]bool
}

// all follows the logs that are not followed, until ctx ends. A log also ends when its function is
// deleted or Windlass stops, so each deployment follows it again.
func (f *follower) all(ctx context.Context, manifests []manifest) {
	for _, m := range manifests {
		key, err := parseKey(m.function.Name, m.function.Namespace)
		if err != nil {
			continue
		}
		key = f.t.key(key)
		f.mu.Lock()
		followed := f.followed[key.String()]
		f.followed[key.String()] = true
		f.mu.Unlock()
		if !followed {
			f.running.Go(func() { f.one(ctx, key) })
		}
	}
}

func (f *follower) one(ctx context.Context, key invocation.FunctionKey) {
	out := &prefixed{to: f.Out, prefix: f.shortName(key) + " "}
	if err := f.t.Log(ctx, logRequest{key: key, follow: true, out: out, notes: f.Err}); err != nil && ctx.Err() == nil {
		fmt.Fprintf(f.Err, "cannot follow the log of function %s: %s\n", key, f.rewriteCommands(printable(err.Error())))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followed, key.String())
}

// deployOnChange deploys again when files change, until ctx ends. What is wrong with them
// is said, and waits for the next change. Files that functions write themselves are named, and
// deploy nothing more.
func (d *developer) deployOnChange(ctx context.Context, watch *fileWatch, t *target, files []string, deployed func([]manifest)) {
	var own ownWrites
	watch.run(ctx, func(changed []string) {
		manifests, err := readManifests(files, nil)
		deploy, found := own.consider(d.now(), changed, authoredFiles(manifests))
		for _, path := range found {
			fmt.Fprintf(d.Err, "%s has changed again after each of %d deployments, so a function seems to write it: dev ignores it until you start dev again; let the function write elsewhere, such as below /tmp\n", path, maxOwnWrites)
		}
		if !deploy {
			return
		}
		if err == nil {
			err = d.deployManifests(ctx, t, manifests)
		}
		if err == nil {
			own.deployed(d.now())
		}
		switch {
		case err != nil && ctx.Err() == nil:
			fmt.Fprintf(d.Err, "%s %s\n", d.paint(d.Err, red, "not deployed:"), d.rewriteCommands(printable(err.Error())))
		case err == nil && deployed != nil:
			deployed(manifests)
		}
	}, func(err error) {
		if ctx.Err() == nil {
			fmt.Fprintf(d.Err, "%s; the next change that is seen tries again\n", err)
		}
	})
}

// watchManifests watches manifests and the code that they name. A watch that began after a
// deployment had read the files would miss what changed in between.
func watchManifests(files []string) (*fileWatch, error) {
	return openWatch(func() []string { return watched(files) })
}

// watched are the files and folders whose changes matter: the manifests and the code that
// they name.
func watched(files []string) []string {
	paths := slices.Clone(files)
	manifests, err := readManifests(files, nil)
	if err != nil {
		// What can be read is watched until it is mended.
		return paths
	}
	for _, m := range manifests {
		if code := m.function.Spec.Template.Code; code != nil && code.Path != "" && filepath.IsAbs(code.Path) {
			paths = append(paths, code.Path)
		}
	}
	return paths
}
