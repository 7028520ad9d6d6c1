package plots

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // draws PNG
	_ "gonum.org/v1/plot/vg/vgsvg" // draws SVG

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// Formats are the formats that Draw knows.
var Formats = []string{"svg", "png"}

const (
	width, height = 7 * vg.Inch, 4.2 * vg.Inch
	margin        = vg.Length(10)
	barSpace      = 5 * vg.Inch // for all bars of a chart
)

// colours are distinct for people who do not see red or green (Okabe and Ito, "Color Universal
// Design").
var colours = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255},
	color.RGBA{R: 213, G: 94, B: 0, A: 255},
	color.RGBA{R: 0, G: 158, B: 115, A: 255},
	color.RGBA{R: 204, G: 121, B: 167, A: 255},
	color.RGBA{R: 230, G: 159, B: 0, A: 255},
	color.RGBA{R: 86, G: 180, B: 233, A: 255},
	color.RGBA{R: 90, G: 90, B: 90, A: 255},
}

var marks = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{},
}

// styleOf is the colour and the mark of the i-th series: those of its family and its kin, or
// else its own, which no two series share.
func styleOf(c report.Chart, i int) (color.Color, draw.GlyphDrawer) {
	s := c.Series[i]
	if s.Family == "" {
		return colours[i%len(colours)], marks[(i+i/len(colours))%len(marks)]
	}
	var families, kin []string
	for _, other := range c.Series[:i+1] {
		if !slices.Contains(families, other.Family) {
			families = append(families, other.Family)
		}
		if !slices.Contains(kin, other.Kin) {
			kin = append(kin, other.Kin)
		}
	}
	return colours[slices.Index(families, s.Family)%len(colours)], marks[slices.Index(kin, s.Kin)%len(marks)]
}

// Draw writes a chart in a format, svg or png.
func Draw(w io.Writer, c report.Chart, format string) error {
	p, err := picture(c)
	if err != nil {
		return fmt.Errorf("chart %s: %w", c.Name, err)
	}
	canvas, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return fmt.Errorf("chart %s as %s: %w", c.Name, format, err)
	}
	if format != "svg" {
		paint(p, canvas)
		_, err = canvas.WriteTo(w)
		return err
	}
	measured := &measured{CanvasWriterTo: canvas}
	paint(p, measured)
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return err
	}
	_, err = w.Write(anyFont(text.Bytes(), measured.widths))
	return err
}

func paint(p *plot.Plot, canvas vg.CanvasSizer) {
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
}

func picture(c report.Chart) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = c.Title
	p.Title.Padding = vg.Points(8)
	p.Title.TextStyle.Font.Size = vg.Points(13)
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.Legend.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant = "Sans"
	}
	p.X.Label.Text, p.Y.Label.Text = c.X.Label, c.Y.Label
	p.X.Padding, p.Y.Padding = vg.Points(4), vg.Points(4)
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(2)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 225}, color.Gray{Y: 225}
	if c.Kind == report.Bars {
		grid.Vertical.Color = nil
	}
	p.Add(grid)
	if !hasPoints(c.Series) {
		return nil, errors.New("there is no point to draw")
	}
	for i, s := range c.Series {
		if err := addSeries(p, c, i, s); err != nil {
			return nil, fmt.Errorf("series %s: %w", s.Name, err)
		}
	}
	if len(c.X.Names) > 0 {
		p.NominalX(c.X.Names...)
		p.X.Min, p.X.Max = -.6, float64(len(c.X.Names))-.4
	}
	if c.Kind == report.Dots {
		keepOffEdges(&p.X, c.X)
		keepOffEdges(&p.Y, c.Y)
	}
	scale(&p.X, c.X)
	scale(&p.Y, c.Y)
	if c.Kind != report.Steps {
		leaveRoomForLegend(p, c)
		return p, nil
	}
	if err := addNames(p, c); err != nil {
		return nil, err
	}
	leaveRoomForNames(p, c)
	return p, nil
}

func hasPoints(series []report.Series) bool {
	for _, s := range series {
		if len(s.Points) > 0 {
			return true
		}
	}
	return false
}

// points are those of a series that its axes can show.
type points []report.Point

func shown(c report.Chart, s report.Series) points {
	var out points
	for _, p := range s.Points {
		if (!c.X.Log || p.X > 0) && (!c.Y.Log || p.Y > 0) {
			out = append(out, p)
		}
	}
	return out
}

func (p points) Len() int                         { return len(p) }
func (p points) XY(i int) (x, y float64)          { return p[i].X, p[i].Y }
func (p points) YError(i int) (low, high float64) { return min(p[i].Err, p[i].Y*.9), p[i].Err }

func (p points) haveErrors() bool {
	return slices.ContainsFunc(p, func(point report.Point) bool { return point.Err > 0 })
}

func addSeries(p *plot.Plot, c report.Chart, i int, s report.Series) error {
	xys := shown(c, s)
	if len(xys) == 0 {
		return nil
	}
	if s.Guide {
		return addGuide(p, s, xys)
	}
	if c.Kind == report.Bars {
		return addBars(p, c, i, s)
	}
	colour, mark := styleOf(c, i)
	line, dots, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	line.Color, line.Width = colour, vg.Points(1.6)
	dots.Color, dots.Radius, dots.Shape = colour, vg.Points(2.8), mark
	bars, err := plotter.NewYErrorBars(xys)
	if err != nil {
		return err
	}
	bars.Color, bars.CapWidth = colour, vg.Points(5)
	switch c.Kind {
	case report.Steps:
		line.StepStyle = plotter.PostStep
		p.Add(line)
		return nil
	case report.Dots:
		dots.Radius = vg.Points(4)
		if xys.haveErrors() {
			p.Add(bars)
		}
		p.Add(dots)
		p.Legend.Add(s.Name, dots)
		return nil
	}
	p.Add(line, dots, bars)
	p.Legend.Add(s.Name, line, dots)
	return nil
}

func addBars(p *plot.Plot, c report.Chart, i int, s report.Series) error {
	values := make(plotter.Values, len(c.X.Names))
	for _, point := range s.Points {
		if at := int(point.X); at >= 0 && at < len(values) {
			values[at] = point.Y
		}
	}
	each := min(barSpace/vg.Length(len(c.X.Names)*(len(c.Series)+1)), vg.Points(28))
	bars, err := plotter.NewBarChart(values, each)
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width = colours[i%len(colours)], 0
	bars.Offset = each * vg.Length(float64(i)-float64(len(c.Series)-1)/2)
	p.Add(bars)
	p.Legend.Add(s.Name, bars)
	return nil
}

// addNames writes the name and the last value of each line where it ends, in its colour
// and below that of the next higher one.
func addNames(p *plot.Plot, c report.Chart) error {
	type name struct {
		at     report.Point
		text   string
		colour color.Color
	}
	var names []name
	for i, s := range c.Series {
		if xys := shown(c, s); len(xys) > 0 {
			last := xys[len(xys)-1]
			colour, _ := styleOf(c, i)
			names = append(names, name{last, fmt.Sprintf(" %s: %.3g", s.Name, last.Y), colour})
		}
	}
	slices.SortFunc(names, func(a, b name) int { return cmp.Compare(b.at.Y, a.at.Y) })
	const apart = .06 // of the axis
	for i, n := range names {
		if i > 0 {
			above := names[i-1].at.Y
			if c.Y.Log {
				n.at.Y = min(n.at.Y, above/math.Pow(p.Y.Max/p.Y.Min, apart))
			} else {
				n.at.Y = min(n.at.Y, above-apart*(p.Y.Max-p.Y.Min))
			}
			names[i] = n
		}
		labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: n.at.X, Y: n.at.Y}}, Labels: []string{n.text}})
		if err != nil {
			return err
		}
		style := &labels.TextStyle[0]
		style.Color, style.YAlign = n.colour, draw.YCenter
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(11)
		p.Add(labels)
	}
	return nil
}

// leaveRoomForNames makes the axis longer than the lines, for their names.
func leaveRoomForNames(p *plot.Plot, c report.Chart) {
	longest := 0
	for _, s := range c.Series {
		longest = max(longest, len(s.Name))
	}
	const perLetter, value = .016, 6
	p.X.Max += (p.X.Max - p.X.Min) * perLetter * float64(longest+value)
}

// addGuide draws what others are to be held against.
func addGuide(p *plot.Plot, s report.Series, xys points) error {
	line, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	line.Dashes, line.Color, line.Width = []vg.Length{vg.Points(5), vg.Points(4)}, color.Gray{Y: 70}, vg.Points(1.2)
	p.Add(line)
	p.Legend.Add(s.Name, line)
	return nil
}

// keepOffEdges makes an axis longer, so that no dot lies on its end.
func keepOffEdges(axis *plot.Axis, a report.Axis) {
	const part = .04
	if a.Log {
		by := math.Pow(axis.Max/axis.Min, part)
		axis.Min, axis.Max = axis.Min/by, axis.Max*by
		return
	}
	by := part * (axis.Max - axis.Min)
	axis.Min, axis.Max = axis.Min-by, axis.Max+by
}

func scale(axis *plot.Axis, a report.Axis) {
	switch {
	case a.Log:
		axis.Scale = plot.LogScale{}
		axis.Tick.Marker = logTicks{powersOfTwo: a.Base2}
		if axis.Min <= 0 {
			axis.Min = axis.Max / 1000
		}
		if axis.Min == axis.Max {
			axis.Min, axis.Max = axis.Min/2, axis.Max*2
		}
	case len(a.Names) > 0:
		// They are its ticks.
	case !a.FromZero:
		axis.Tick.Marker = evenTicks{}
	default:
		axis.Tick.Marker = evenTicks{}
		axis.Min = 0
		if axis.Max <= 0 {
			axis.Max = 1
		}
	}
}

// leaveRoomForLegend raises the top, so that the legend covers no point.
func leaveRoomForLegend(p *plot.Plot, c report.Chart) {
	entries := len(c.Series)
	if entries < 2 && c.Kind != report.Bars {
		return
	}
	part := .065 * float64(entries)
	if c.Y.Log {
		p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, part/(1-part))
		return
	}
	p.Y.Max += (p.Y.Max - p.Y.Min) * part / (1 - part)
}
