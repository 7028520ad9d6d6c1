//go:build apiserver

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/kubeclient"
)

func TestNoProcedureRestartsMembersOneAfterTheOther(t *testing.T) {
	restart := regexp.MustCompile(`rollout restart \S*(statefulset|sts).*`)
	if found := restart.FindString(page(t, filepath.Join(chartDir, "README.md"))); found != "" {
		t.Errorf("README.md says %q, which ends with the first member after a change of the CA", found)
	}
}

// The keys are in no release, so Helm leaves them.
func TestUninstallNamesTheKeysThatStay(t *testing.T) {
	for _, path := range []string{filepath.Join(chartDir, "README.md"), "../../docs/install.md"} {
		_, uninstall, _ := strings.Cut(page(t, path), "\n## Uninstall\n")
		uninstall, _, _ = strings.Cut(uninstall, "\n## ")
		if !strings.Contains(uninstall, "delete secret "+kubeclient.KeysSecret) {
			t.Errorf("%s uninstalls and does not delete the API keys:\n%s", path, uninstall)
		}
	}
}

// All instances are cut off by such a change.
func TestTheDomainOfCertificatesSaysWhatItsChangeCosts(t *testing.T) {
	_, description, _ := strings.Cut(page(t, filepath.Join(chartDir, "README.md")), "\n| `tls.domain` |")
	description, _, _ = strings.Cut(description, "\n")
	if !strings.Contains(description, "replacing the CA") {
		t.Errorf("tls.domain is only said to be %s", description)
	}
}

// page is the text of a page of the documentation.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
