package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestARoleEndsWithTheCodeOfThePlatform(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"well":                     {[]string{"gateway"}, exitOK, ""},
		"badly":                    {[]string{"gateway", "--fail"}, exitPlatform, "no etcd"},
		"with a flag of the verbs": {[]string{"gateway", "--kubeconfig", "x"}, exitUsage, "--kubeconfig means nothing to gateway"},
		"with a wrong flag":        {[]string{"gateway", "--fial"}, exitUsage, "--fial"},
	} {
		t.Run(name, func(t *testing.T) {
			fail := false
			role := &cobra.Command{Use: "gateway", RunE: func(*cobra.Command, []string) error {
				if fail {
					return errors.New("no etcd")
				}
				return nil
			}}
			role.Flags().BoolVar(&fail, "fail", false, "")
			var out, wrong bytes.Buffer
			code := Main(c.args, Streams{Out: &out, Err: &wrong}, Programs{Roles: []*cobra.Command{role}})
			if code != c.code || !strings.Contains(wrong.String(), c.says) {
				t.Errorf("exit %d, want %d; it says %q, want %q", code, c.code, wrong.String(), c.says)
			}
		})
	}
}
