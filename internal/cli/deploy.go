package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// deployFlags say what deploy and diff are about.
type deployFlags struct {
	files  []string
	from   functionFlags
	wait   time.Duration
	dryRun bool
	// secrets are what deploy is to keep on this machine, as NAME=FILE.
	secrets []string
}

func (f *deployFlags) add(w *finder, cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "`file` or folder with manifests, or - for the standard input; repeatable")
	f.from.add(cmd)
	cmd.Flags().BoolVar(&w.flags.forceConflicts, "force-conflicts", false, "take over fields that others have set (in a cluster)")
}

// deployer makes functions be as manifests or flags describe them.
type deployer struct{ reporter }

func (d *deployer) deployCommand() *cobra.Command {
	var flags deployFlags
	cmd := &cobra.Command{
		Use:        "deploy (-f FILE|FOLDER|- ... | --name NAME [flags] [-- COMMAND ...])",
		SuggestFor: []string{"apply", "create", "update"},
		Short:      "Create or change functions",
		Long: `Create or update functions from manifests or flags, and say what changed.

A relative code path starts at the manifest's folder, or with flags at the
current folder. A folder stands for the Functions in all *.yaml, *.yml and
*.json files below it, without hidden folders, node_modules and .venv.

Calls move to the new revision once one of its instances has started; until then
they go where they went before. --wait waits for that. windlass rollout shows the
progress, and goes back.

Flags describe the whole function: deploy removes what an earlier one set and this
one leaves out, and says so. windlass scale, set and edit change single fields.

On this machine, Windlass starts a command as it is, without a shell, in the
folder --code (default: the current folder). It must serve HTTP on $PORT.

A cluster takes an image, or code for a runtime: a file, or a folder of a few text
files. Deploy sends only the fields that you give, so fields that others set stay
as they are.`,
		Example: `  windlass deploy -f function.yaml
  windlass deploy --name hello -- python3 app.py
  windlass deploy --name greet --runtime python3.13 --handler main.handle --code ./greet
  windlass deploy --name resize --image example.com/team/resize:1.0 --wait`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("wait") && flags.wait <= 0 {
				return usagef("--wait=%s must be more than 0; leave it out to wait for nothing", flags.wait)
			}
			if flags.wait > 0 && flags.dryRun {
				return usagef("--dry-run starts nothing, and --wait waits for a start; remove one of the two")
			}
			t, manifests, err := d.resolveDeploy(cmd, flags, args)
			if err != nil {
				return err
			}
			secrets, err := readSecrets(flags.secrets)
			if err == nil {
				err = t.localOnlyFlag("secret", len(secrets) > 0)
			}
			if err == nil && !t.inCluster() {
				err = d.checkSecrets(t, secrets, manifests)
			}
			if err == nil && len(secrets) > 0 && !flags.dryRun {
				err = d.storeSecrets(t, secrets, manifests)
			}
			if err != nil {
				return err
			}
			d.noteContext(t)
			return d.deploy(cmd.Context(), t, manifests, flags)
		}),
	}
	flags.add(d.finder, cmd)
	cmd.Flags().DurationVar(&flags.wait, "wait", 0, "wait until the new revision has started and calls go to it, or it has failed, at most `time` (30s if none is given)")
	cmd.Flags().Lookup("wait").NoOptDefVal = defaultReadyTime.String()
	cmd.Flags().StringArrayVar(&flags.secrets, "secret", nil, "on this machine, `NAME=FILE` with the variables of the Secret or ConfigMap NAME; repeatable")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "say what would change, and change nothing")
	return cmd
}

// resolveDeploy finds the functions that files or flags describe, and the target. It reports
// everything that is wrong with any of them there before anything is sent.
func (d *deployer) resolveDeploy(cmd *cobra.Command, flags deployFlags, args []string) (*target, []manifest, error) {
	manifests, err := d.describedFunctions(cmd, flags.files, flags.from, args)
	if err != nil {
		return nil, nil, err
	}
	t, err := d.target(cmd.Context())
	if problems := checkFor(t, manifests, len(flags.files) > 0); problems != nil {
		return nil, nil, problems
	}
	if err == nil {
		err = t.clusterOnly("force-conflicts", d.flags.forceConflicts)
	}
	return t, manifests, err
}

// checkFor says what is wrong with the functions, in general and for a Windlass on
// this machine, if that is the target; nil if there is none. A cluster's says for itself
// what it cannot run.
func checkFor(t *target, manifests []manifest, fromFiles bool) error {
	validate := v1alpha1.Validate
	if t != nil && !t.inCluster() {
		validate = validateLocal
	}
	problems := errors.Join(validateManifests(manifests, validate)...)
	switch {
	case problems == nil:
		return nil
	case fromFiles:
		return inputError(problems)
	}
	return usagef("%w", problems)
}

// describedFunctions are the functions that files or flags describe.
func (d *deployer) describedFunctions(cmd *cobra.Command, files []string, from functionFlags, args []string) ([]manifest, error) {
	stray := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		stray = args[:dash]
	}
	if err := valueApart(cmd, stray); err != nil {
		return nil, err
	}
	given := from.given(cmd)
	switch {
	case len(files) > 0 && len(given) > 0:
		return nil, usagef("-f and --%s exclude each other: write it into the manifest, or leave out -f", given[0])
	case len(files) > 0 && len(args) > 0 && cmd.ArgsLenAtDash() < 0:
		return nil, usagef("unexpected argument %q: repeat -f before every file", args[0])
	case len(files) > 0 && len(args) > 0:
		return nil, usagef("-f and a command exclude each other: write it into the manifest, or leave out -f")
	case len(files) > 0:
		manifests, err := readManifests(files, d.In)
		if err != nil {
			return nil, err
		}
		return manifests, d.enforceNamespace(manifests)
	case len(args) > 0 && cmd.ArgsLenAtDash() != 0:
		return nil, usagef("unexpected argument %q: did you mean -f %s for a manifest, --name %s for a name, or -- before a command?", args[0], args[0], args[0])
	}
	fn, err := from.build(cmd, d.namespace, args)
	if err != nil {
		return nil, err
	}
	return []manifest{{source: "flags", function: fn}}, nil
}

// deploy prepares all functions and applies one after the other. It stops at the
// first that fails.
func (d *deployer) deploy(ctx context.Context, t *target, manifests []manifest, flags deployFlags) error {
	applies, err := prepare(t, manifests)
	if err != nil {
		return err
	}
	for i, apply := range applies {
		applied, err := apply(ctx, flags.dryRun)
		left := len(applies) - i
		if applied.Function != nil {
			left--
		}
		if err == nil && flags.wait > 0 {
			fmt.Fprintf(d.Err, "function %s %s, waiting until an instance of it has started\n", applied.Function.Key(), applied.Result)
			if applied.Function, err = d.awaitProof(ctx, t, applied.Function, flags.wait); err == nil {
				fmt.Fprintln(d.Err, progressOf(applied.Function).text)
			}
		}
		if err != nil {
			if i < len(applies)-1 {
				return fmt.Errorf("%w\n%d of %d functions were not applied; correct this one and deploy again", err, left, len(applies))
			}
			return err
		}
		if flags.dryRun {
			d.printPreview(applied, false)
			continue
		}
		d.printApplied(applied, len(manifests) == 1)
	}
	return nil
}

// prepare finds what is wrong with any of the functions before anything is sent.
func prepare(t *target, manifests []manifest) ([]apply, error) {
	var applies []apply
	var errs []error
	for _, m := range manifests {
		fn := m.function.DeepCopy()
		fn.Namespace = cmp.Or(fn.Namespace, t.namespace)
		prepared, err := t.Prepare(fn)
		if err != nil {
			errs = append(errs, err)
		}
		applies = append(applies, prepared)
	}
	return applies, errors.Join(errs...)
}

func (d *deployer) diffCommand() *cobra.Command {
	var flags deployFlags
	cmd := &cobra.Command{
		Use:   "diff (-f FILE|FOLDER|- ... | --name NAME [flags] [-- COMMAND ...])",
		Short: "Show what deploy would change",
		Long: `Show what windlass deploy would change with the same flags, including the values
of environment variables. It changes nothing.

The exit code is 1 if anything would change, and 0 if not.`,
		Example: `  windlass diff -f function.yaml`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			t, manifests, err := d.resolveDeploy(cmd, flags, args)
			if err != nil {
				return err
			}
			return d.diff(cmd.Context(), t, manifests)
		}),
	}
	flags.add(d.finder, cmd)
	return cmd
}

func (d *deployer) diff(ctx context.Context, t *target, manifests []manifest) error {
	applies, err := prepare(t, manifests)
	if err != nil {
		return err
	}
	differ := 0
	for _, apply := range applies {
		preview, err := apply(ctx, true)
		if err != nil {
			return err
		}
		if d.printPreview(preview, true) {
			differ++
		}
	}
	if differ > 0 {
		return functionErrorf("%d of %d functions would change; windlass deploy does it", differ, len(manifests))
	}
	return nil
}
