package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// keyring makes, lists and revokes API keys.
type keyring struct{ *finder }

func (k *keyring) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys COMMAND",
		Short: "Create, list and revoke API keys",
		Long: `Create, list and revoke API keys. Callers need one with windlass up --auth, and in
a cluster in namespaces with mode: Required.

Windlass keeps only digests of keys: in the file keys.yaml of the data folder, or in
the Secret windlass-keys of the namespace that Windlass runs in. Gateways take
up changes within two seconds, in a cluster within about a minute.`,
		Args: cobra.ArbitraryArgs,
		RunE: chooseCommand("windlass keys create, list or revoke"),
	}
	cmd.AddCommand(k.keysCreateCommand(), k.keysListCommand(), k.keysRevokeCommand())
	cmd.PersistentFlags().StringVar(&k.flags.windlassNamespace, "windlass-namespace", "", "`namespace` that Windlass runs in (default: windlass finds it)")
	return cmd
}

func (k *keyring) keysCreateCommand() *cobra.Command {
	var expires time.Duration
	var name string
	cmd := &cobra.Command{
		Use:   "create (NAMESPACE | NAMESPACE/NAME | '*') ... [--name NAME] [--expires TIME]",
		Short: "Create an API key and print it once",
		Long: `Create an API key for the functions and namespaces that you name, or for
everything. Only the key goes to the standard output. It cannot be shown again.
A name says later whose key it is, and windlass keys revoke takes the name too.`,
		Example: `  export WINDLASS_KEY=$(windlass keys create team-a --name laptop)
  windlass keys create team-a/resize team-b --expires 720h`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			scope := auth.Scope(args)
			switch {
			case len(scope) > 0 && k.namespace != "":
				return usagef("--namespace has no effect beside %s; remove it, or write %s/NAME for a function of that namespace", args[0], k.namespace)
			case k.namespace != "":
				scope = auth.Scope{k.namespace}
			case len(scope) == 0:
				return usagef("what may the key call? name namespaces, functions as NAMESPACE/NAME, or '*'")
			}
			if cmd.Flags().Changed("expires") && expires <= 0 {
				return usagef("--expires %s must be more than 0; leave it out for a key that does not expire", expires)
			}
			if cmd.Flags().Changed("name") {
				if err := auth.CheckName(name); err != nil {
					return usagef("--name: %w", err)
				}
			}
			return k.createKey(cmd.Context(), name, scope, expires)
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` that says whose key it is (default: none)")
	cmd.Flags().DurationVar(&expires, "expires", 0, "`time` for which the key is valid, such as 720h (default: until it is revoked)")
	return cmd
}

func (k *keyring) createKey(ctx context.Context, name string, scope auth.Scope, expires time.Duration) error {
	secret, key, err := auth.NewKey(scope, k.now(), expires)
	if err != nil {
		return usagef("%w", err)
	}
	key.Name = name
	t, err := k.target(ctx)
	if err != nil {
		return err
	}
	k.noteContext(t)
	err = k.editKeys(ctx, t, func(list auth.KeyList) (auth.KeyList, error) {
		if name != "" && list.Named(name) {
			return list, inputError(fmt.Errorf("there is a key named %s already; choose another name, or revoke that one first", name))
		}
		return auth.KeyList{Keys: append(list.Keys, key)}, nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(k.Out, secret)
	until := "until it is revoked"
	if !key.Expires.IsZero() {
		until = "until " + key.Expires.Format(time.RFC3339)
	}
	fmt.Fprintf(k.Err, "key %s may call %s %s; it is not shown again\n", titleOf(key), strings.Join(scope, ", "), until)
	return nil
}

// titleOf is how people know a key.
func titleOf(key auth.Key) string {
	if key.Name == "" {
		return key.ID
	}
	return key.Name + " (" + key.ID + ")"
}

func (k *keyring) keysListCommand() *cobra.Command {
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
			t, err := k.target(cmd.Context())
			if err != nil {
				return err
			}
			document, err := t.ReadKeys(cmd.Context())
			if err != nil {
				return err
			}
			list, err := auth.ParseKeys(document)
			if err != nil {
				return inputError(err)
			}
			if output != "table" {
				return k.printObject(shownKeys(list), output)
			}
			k.printKeys(list)
			return nil
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "`format`: table, json or yaml")
	return cmd
}

// shownKey is a key as programs read it: without its digest.
type shownKey struct {
	ID      string     `json:"id"`
	Name    string     `json:"name,omitempty"`
	Allow   auth.Scope `json:"allow"`
	Created time.Time  `json:"created,omitzero"`
	Expires time.Time  `json:"expires,omitzero"`
}

func shownKeys(list auth.KeyList) []shownKey {
	told := make([]shownKey, 0, len(list.Keys))
	for _, key := range list.Keys {
		told = append(told, shownKey{key.ID, key.Name, key.Allow, key.Created, key.Expires})
	}
	return told
}

func (k *keyring) printKeys(list auth.KeyList) {
	if len(list.Keys) == 0 {
		fmt.Fprintln(k.Err, "there are no API keys; windlass keys create makes one")
		return
	}
	rows := [][]cell{cells("ID", "NAME", "ALLOW", "AGE", "EXPIRES")}
	for _, key := range list.Keys {
		expires := cell{text: "never"}
		switch {
		case key.Expired(k.now()):
			expires = cell{text: "expired", colour: red}
		case !key.Expires.IsZero():
			expires.text = key.Expires.Format(time.RFC3339)
		}
		row := cells(key.ID, cmp.Or(key.Name, "-"), strings.Join(key.Allow, ","), age(key.Created, k.now()), "")
		row[4] = expires
		rows = append(rows, row)
	}
	k.table(k.Out, rows)
}

func (k *keyring) keysRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke (ID | NAME) ...",
		Short:   "Revoke API keys",
		Example: `  windlass keys revoke 4f2d9c01b7aa laptop`,
		RunE: run(func(cmd *cobra.Command, which []string) error {
			if len(which) == 0 {
				return usagef("which key? windlass keys list shows IDs and names")
			}
			t, err := k.target(cmd.Context())
			if err != nil {
				return err
			}
			k.noteContext(t)
			var revoked []auth.Key
			err = k.editKeys(cmd.Context(), t, func(list auth.KeyList) (_ auth.KeyList, err error) {
				list, revoked, err = without(list, which)
				return list, err
			})
			if err != nil {
				return err
			}
			for _, key := range revoked {
				fmt.Fprintf(k.Out, "key %s revoked\n", titleOf(key))
			}
			return nil
		}),
	}
}

// without returns the list without some keys, all of which must exist, and the removed keys.
func without(list auth.KeyList, which []string) (_ auth.KeyList, removed []auth.Key, _ error) {
	for _, idOrName := range which {
		rest, key, found := list.Without(idOrName)
		if !found {
			return list, nil, inputError(fmt.Errorf("there is no key %s; windlass keys list shows IDs and names", idOrName))
		}
		list, removed = rest, append(removed, key)
	}
	return list, removed, nil
}

// editKeys changes the list of a Windlass.
func (k *keyring) editKeys(ctx context.Context, t *target, edit func(auth.KeyList) (auth.KeyList, error)) error {
	return t.EditKeys(ctx, func(document []byte) ([]byte, error) {
		list, err := auth.ParseKeys(document)
		if err != nil {
			return nil, inputError(fmt.Errorf("%w; correct it by hand", err))
		}
		if list, err = edit(list); err != nil {
			return nil, err
		}
		return list.Encode()
	})
}
