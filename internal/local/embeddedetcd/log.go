package embeddedetcd

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// bridge writes what etcd logs to a slog.Logger.
type bridge struct {
	zapcore.LevelEnabler
	log *slog.Logger
}

func newBridge(log *slog.Logger, level zapcore.LevelEnabler) zapcore.Core {
	return bridge{level, log.With("component", "etcd")}
}

func (b bridge) With(fields []zapcore.Field) zapcore.Core {
	return bridge{b.LevelEnabler, slog.New(b.log.Handler().WithAttrs(attrs(fields)))}
}

// premature are what etcd reports when it looks for its storage version before
// anything was stored. It looks again a few seconds later, and finds it.
var premature = map[string]bool{
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
}

func (b bridge) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if b.Enabled(entry.Level) && !premature[entry.Message] {
		return checked.AddCore(entry, b)
	}
	return checked
}

func (b bridge) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	b.log.LogAttrs(context.Background(), level(entry.Level), entry.Message, attrs(fields)...)
	return nil
}

// Sync has nothing to do: a slog.Handler has written when it returns.
func (b bridge) Sync() error { return nil }

// level has fewer steps than zap: what etcd calls panic or fatal is an error.
func level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// attrs keeps the order of the fields. One field may make several attributes,
// such as an error and its details.
func attrs(fields []zapcore.Field) []slog.Attr {
	var out []slog.Attr
	for _, field := range fields {
		encoder := zapcore.NewMapObjectEncoder()
		field.AddTo(encoder)
		for key, value := range encoder.Fields {
			if field.Type == zapcore.ErrorType && key == field.Key {
				key = "err"
			}
			out = append(out, slog.Any(key, value))
		}
	}
	return out
}
