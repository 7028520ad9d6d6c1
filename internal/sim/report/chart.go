package report

// Chart is the numbers of a picture.
type Chart struct {
	// Name is that of the picture's file, without its ending.
	Name  string `json:"name"`
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	// Kind is how the series are drawn.
	Kind   Kind     `json:"kind"`
	Series []Series `json:"series"`
}

// Kind is how a chart's series are drawn.
type Kind string

// Kinds of charts.
const (
	// Lines joins the points of each series.
	Lines Kind = "lines"
	// Steps holds each point's Y until the next one's X.
	Steps Kind = "steps"
	// Bars stands a group of bars, one of each series, on each name of the X
	// axis; a point's X counts the names from 0.
	Bars Kind = "bars"
	// Dots draws the points alone.
	Dots Kind = "dots"
)

// Axis is one axis.
type Axis struct {
	Label string `json:"label"`
	// Log says that the axis is logarithmic, and Base2 that its ticks are
	// powers of two.
	Log   bool `json:"log,omitempty"`
	Base2 bool `json:"base2,omitempty"`
	// FromZero says that the axis begins at 0.
	FromZero bool `json:"fromZero,omitempty"`
	// Names are those of the groups of bars, or of the dots.
	Names []string `json:"names,omitempty"`
}

// Series is one line, or the bars of one colour.
type Series struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
	// Guide marks a reference such as a goal: a dashed line in every kind of chart.
	Guide bool `json:"guide,omitempty"`
	// Family, if set, is the common property of all series of one colour, and Kin that of one
	// shape: a decider and a keep-alive, for example.
	Family string `json:"family,omitempty"`
	Kin    string `json:"kin,omitempty"`
}

// Point is a point; Err, if it is positive, is a standard deviation of Y.
type Point struct {
	X   float64 `json:"x"`
	Y   float64 `json:"y"`
	Err float64 `json:"err,omitempty"`
}
