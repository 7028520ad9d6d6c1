// Command windlass-plot draws the charts of the output of windlass sim and bench --json, and writes the
// reports as text beside them. It is a separate program because the drawing library would make
// every other one larger.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windlass-dev/windlass/internal/sim/plots"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "windlass-plot:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out, errs io.Writer) error {
	flags := flag.NewFlagSet("windlass-plot", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintln(errs, "usage: windlass sim fig3 --json | windlass-plot [-dir FOLDER] [-formats svg,png] [FILE...]")
		flags.PrintDefaults()
	}
	folder := flags.String("dir", ".", "`folder` for the pictures; it is made if need be")
	formats := flags.String("formats", strings.Join(plots.Formats, ","), "`formats` to draw, txt for the reports as text, md for one page of all figures, with commas between")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted := strings.Split(*formats, ",")
	for _, format := range wanted {
		if format != asText && format != asPage && !slices.Contains(plots.Formats, format) {
			return fmt.Errorf("-formats %s: %q is not one of %s, %s, %s", *formats, format, strings.Join(plots.Formats, ", "), asText, asPage)
		}
	}
	reports, err := read(flags.Args(), in)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*folder, 0o755); err != nil {
		return err
	}
	if slices.Contains(wanted, asPage) {
		page := func(w io.Writer) error { return writePage(w, reports) }
		if err := writeFile("figures", asPage, *folder, out, page); err != nil {
			return err
		}
	}
	for _, r := range reports {
		if err := saveAll(r, *folder, wanted, out); err != nil {
			return err
		}
	}
	return nil
}

// asText is the format of whole reports, and asPage that of the figures of all.
const (
	asText = "txt"
	asPage = "md"
)

func writePage(w io.Writer, reports []report.Report) error {
	if _, err := fmt.Fprint(w, "# Figures\n\nWhat each experiment found, beside its goal if it has one. "+
		"`make results` writes this page; [Results](README.md) says what it means.\n\n"); err != nil {
		return err
	}
	return report.WriteMarkdown(w, reports)
}

func saveAll(r report.Report, folder string, formats []string, out io.Writer) error {
	for _, format := range formats {
		if format == asPage {
			continue
		}
		if format == asText {
			if err := writeFile(r.Name, asText, folder, out, r.WriteText); err != nil {
				return err
			}
			continue
		}
		for _, chart := range r.Charts {
			draw := func(w io.Writer) error { return plots.Draw(w, chart, format) }
			if err := writeFile(chart.Name, format, folder, out, draw); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the reports of the files, or of in if there is none.
func read(files []string, in io.Reader) ([]report.Report, error) {
	if len(files) == 0 {
		return report.ReadJSON(in)
	}
	var all []report.Report
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		reports, err := report.ReadJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, reports...)
	}
	return all, nil
}

// writeFile writes a file and prints its name.
func writeFile(name, format, folder string, out io.Writer, write func(io.Writer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	// The name comes from a file that may be anyone's.
	path := filepath.Join(folder, filepath.Base(name)+"."+format)
	if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(out, path)
	return nil
}
