package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the findings of reports as one table in Markdown, for a page
// that says what makes it.
func WriteMarkdown(w io.Writer, reports []Report) error {
	var b bytes.Buffer
	fmt.Fprint(&b, "| experiment | figure | found | goal | | |\n|---|---|---|---|---|---|\n")
	for _, r := range reports {
		for _, f := range r.Findings {
			verdict := ""
			if f.Goal() != "" {
				verdict = "met"
				if !f.Met() {
					verdict = "**missed**"
				}
			}
			cells := []string{r.Name, "`" + f.Name + "`", number(f.Value), f.Goal(), verdict, f.Beside}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
