package plots

import (
	"bytes"
	"fmt"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// measured notes how wide each text is in the font that the layout is computed for.
type measured struct {
	vg.CanvasWriterTo
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (m *measured) FillString(f font.Face, at vg.Point, text string) {
	m.widths = append(m.widths, f.Width(text))
	m.CanvasWriterTo.FillString(f, at, text)
}

// The only font that the drawing library names, and its substitute where it is not installed,
// as on most machines.
var (
	oneFont  = []byte("font-family:Liberation Sans;")
	anyFonts = []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
)

// anyFont makes an SVG look alike with whatever font a reader has: each text, in the
// order of the widths, fills the width that it was given.
func anyFont(svg []byte, widths []vg.Length) []byte {
	parts := bytes.Split(bytes.ReplaceAll(svg, oneFont, anyFonts), []byte("<text "))
	var out bytes.Buffer
	out.Write(parts[0])
	for i, part := range parts[1:] {
		fmt.Fprintf(&out, "<text textLength=\"%.4g\" lengthAdjust=\"spacingAndGlyphs\" ", widths[i].Points())
		out.Write(part)
	}
	return out.Bytes()
}
