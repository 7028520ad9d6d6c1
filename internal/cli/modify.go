package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// modifier changes fields of functions that exist.
type modifier struct{ reporter }

// changeFunction changes fields of the function that an argument names, and prints them.
func (m *modifier) changeFunction(ctx context.Context, name string, edit func(*v1alpha1.Function) error) error {
	key, err := m.key(name)
	if err != nil {
		return err
	}
	t, err := m.target(ctx)
	if err != nil {
		return err
	}
	m.noteContext(t)
	key = t.key(key)
	applied, err := t.Change(ctx, key, edit, false)
	if err != nil {
		return m.explainNotFound(ctx, t, key, err)
	}
	fmt.Fprintf(m.Out, "function %s %s\n", key, applied.Result)
	printChanges(m.Out, changesOf(applied), false)
	return nil
}

func (m *modifier) scaleCommand() *cobra.Command {
	var least int32
	var most string
	cmd := &cobra.Command{
		Use:   "scale NAME [--min N] [--max N|none]",
		Short: "Change how many instances a function may have",
		Long: `Change the minimum and the maximum number of instances of a function. Between
them, instances come and go with its calls. Everything else stays as it is.`,
		Example: `  windlass scale hello --min 2
  windlass scale hello --min 0 --max none`,
		Args:              oneName,
		ValidArgsFunction: m.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			if !given("min") && !given("max") {
				return usagef("--min and --max are missing; write one of them, or both")
			}
			bound, err := parseMost(most)
			if err != nil {
				return err
			}
			return m.changeFunction(cmd.Context(), args[0], func(fn *v1alpha1.Function) error {
				if given("min") {
					fn.Spec.Scaling.MinInstances = least
				}
				if given("max") {
					fn.Spec.Scaling.MaxInstances = bound
				}
				return nil
			})
		}),
	}
	cmd.Flags().Int32Var(&least, "min", 0, "`number` of instances to keep when nothing is called")
	cmd.Flags().StringVar(&most, "max", "none", "largest `number` of instances, or none for as many as fit")
	return cmd
}

// parseMost reads --max of scale; nil is none.
func parseMost(text string) (*int32, error) {
	if text == "none" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return nil, usagef("--max %q is neither a number of 1 or more nor none; write for example --max 3", text)
	}
	most := int32(n)
	return &most, nil
}

func (m *modifier) setCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set env NAME ...",
		Short: "Change environment variables of a function",
		Args:  cobra.ArbitraryArgs,
		RunE:  chooseCommand("windlass set env NAME KEY=VALUE"),
	}
	cmd.AddCommand(m.setEnvCommand())
	return cmd
}

func (m *modifier) setEnvCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "env NAME (KEY=VALUE | KEY- ...) [--env-file FILE]",
		Short: "Change environment variables of a function",
		Long: `Set environment variables of a function, with KEY=VALUE, and remove others, with
KEY-. New instances replace the old ones. Everything else stays as it is.`,
		Example: `  windlass set env hello GREETING=ahoy DEBUG-
  windlass set env hello --env-file .env`,
		ValidArgsFunction: m.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return oneName(nil, args)
			}
			env, err := readEnvFiles("--env-file", files)
			if err != nil {
				return err
			}
			if len(args) == 1 && len(files) == 0 {
				return usagef("nothing to set: write KEY=VALUE, KEY- to remove one, or --env-file")
			}
			for _, arg := range args[1:] {
				v, err := parseEnvChange(arg)
				if err != nil {
					return err
				}
				env = append(env, v)
			}
			return m.changeFunction(cmd.Context(), args[0], func(fn *v1alpha1.Function) error {
				fn.Spec.Template.Env = changeEnv(fn.Spec.Template.Env, env)
				return nil
			})
		}),
	}
	cmd.Flags().StringArrayVar(&files, "env-file", nil, envFileUsage)
	return cmd
}
