package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/pkg/callers"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys COMMAND",
		Short: "Make, list and revoke API keys",
		Long: `Make, list and revoke API keys, which callers show where they are required: with
windlass up --auth, and in a cluster in namespaces with auth: required.

Only digests of keys are kept: in the file keys.yaml of the data folder, or in
the Secret windlass-keys of the namespace that Windlass runs in. Gateways follow
changes within two seconds, those of a cluster within about a minute.`,
		Args: noArgs,
		RunE: run(func(*cobra.Command, []string) error {
			return usagef("which? write windlass keys create, list or revoke")
		}),
	}
	cmd.AddCommand(a.keysCreateCommand(), a.keysListCommand(), a.keysRevokeCommand())
	cmd.PersistentFlags().StringVar(&a.flags.windlassNamespace, "windlass-namespace", "", "`namespace` that Windlass runs in (default: it is looked for)")
	return cmd
}

func (a *app) keysCreateCommand() *cobra.Command {
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "create (NAMESPACE | NAMESPACE/NAME | '*') ... [--expires TIME]",
		Short: "Make an API key and print it, once",
		Long: `Make an API key that may call all functions of the namespaces, and the functions,
that are named, or everything. The key alone goes to the standard output. It
cannot be shown again.`,
		Example: `  export WINDLASS_KEY=$(windlass keys create team-a)
  windlass keys create team-a/resize team-b --expires 720h`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			scope := callers.Scope(args)
			if len(scope) == 0 && a.namespace != "" {
				scope = callers.Scope{a.namespace}
			}
			if len(scope) == 0 {
				return usagef("what may the key call? name namespaces, functions as NAMESPACE/NAME, or '*'")
			}
			if expires < 0 {
				return usagef("--expires %s must be more than 0; leave it out for a key that does not expire", expires)
			}
			return a.createKey(cmd.Context(), scope, expires)
		}),
	}
	cmd.Flags().DurationVar(&expires, "expires", 0, "`time` for which the key is valid, such as 720h (default: until it is revoked)")
	return cmd
}

func (a *app) createKey(ctx context.Context, scope callers.Scope, expires time.Duration) error {
	secret, key, err := callers.NewKey(scope, a.now(), expires)
	if err != nil {
		return usagef("%w", err)
	}
	t, err := a.target(ctx)
	if err != nil {
		return err
	}
	a.tellContext(t)
	err = a.editKeys(ctx, t, func(list callers.KeyList) (callers.KeyList, error) {
		return callers.KeyList{Keys: append(list.Keys, key)}, nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, secret)
	until := "until it is revoked"
	if !key.Expires.IsZero() {
		until = "until " + key.Expires.Format(time.RFC3339)
	}
	fmt.Fprintf(a.Err, "key %s may call %s %s; it is not shown again\n", key.ID, strings.Join(scope, ", "), until)
	return nil
}

func (a *app) keysListCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list [-o table|json|yaml]",
		Short:   "List API keys and what they may call",
		Example: `  windlass keys list`,
		Args:    noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "table", "json", "yaml"); err != nil {
				return err
			}
			t, err := a.target(cmd.Context())
			if err != nil {
				return err
			}
			document, err := t.ReadKeys(cmd.Context())
			if err != nil {
				return err
			}
			list, err := callers.ParseKeys(document)
			if err != nil {
				return inputError(err)
			}
			if output != "table" {
				return a.printObject(toldKeys(list), output)
			}
			a.printKeys(list)
			return nil
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "`format`: table, json or yaml")
	return cmd
}

// toldKey is what programs are told of a key: all but its digest.
type toldKey struct {
	ID      string        `json:"id"`
	Allow   callers.Scope `json:"allow"`
	Created time.Time     `json:"created,omitzero"`
	Expires time.Time     `json:"expires,omitzero"`
}

func toldKeys(list callers.KeyList) []toldKey {
	told := make([]toldKey, 0, len(list.Keys))
	for _, key := range list.Keys {
		told = append(told, toldKey{key.ID, key.Allow, key.Created, key.Expires})
	}
	return told
}

func (a *app) printKeys(list callers.KeyList) {
	if len(list.Keys) == 0 {
		fmt.Fprintln(a.Err, "there are no API keys; windlass keys create makes one")
		return
	}
	rows := [][]cell{cells("ID", "ALLOW", "AGE", "EXPIRES")}
	for _, key := range list.Keys {
		expires := cell{text: "never"}
		switch {
		case key.Expired(a.now()):
			expires = cell{text: "expired", colour: red}
		case !key.Expires.IsZero():
			expires.text = key.Expires.Format(time.RFC3339)
		}
		row := cells(key.ID, strings.Join(key.Allow, ","), age(key.Created, a.now()), "")
		row[3] = expires
		rows = append(rows, row)
	}
	a.table(a.Out, rows)
}

func (a *app) keysRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID ...",
		Short:   "Revoke API keys",
		Example: `  windlass keys revoke 4f2d9c01b7aa`,
		RunE: run(func(cmd *cobra.Command, ids []string) error {
			if len(ids) == 0 {
				return usagef("which key? windlass keys list shows the IDs")
			}
			t, err := a.target(cmd.Context())
			if err != nil {
				return err
			}
			a.tellContext(t)
			err = a.editKeys(cmd.Context(), t, func(list callers.KeyList) (callers.KeyList, error) {
				return without(list, ids)
			})
			if err != nil {
				return err
			}
			for _, id := range ids {
				fmt.Fprintf(a.Out, "key %s revoked\n", id)
			}
			return nil
		}),
	}
}

// without is the list without some keys, all of which must be there.
func without(list callers.KeyList, ids []string) (callers.KeyList, error) {
	for _, id := range ids {
		var found bool
		if list, found = list.Without(id); !found {
			return list, inputError(fmt.Errorf("there is no key %s; windlass keys list shows the IDs", id))
		}
	}
	return list, nil
}

// editKeys changes the list of a Windlass.
func (a *app) editKeys(ctx context.Context, t *target, edit func(callers.KeyList) (callers.KeyList, error)) error {
	return t.EditKeys(ctx, func(document []byte) ([]byte, error) {
		list, err := callers.ParseKeys(document)
		if err != nil {
			return nil, inputError(fmt.Errorf("%w; correct it by hand", err))
		}
		if list, err = edit(list); err != nil {
			return nil, err
		}
		return list.Encode()
	})
}
