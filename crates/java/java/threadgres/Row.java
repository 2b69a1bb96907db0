package threadgres;

import java.util.LinkedHashMap;
import java.util.Map;

/** A row: columns' names and values. */
final class Row {
    final String[] names;
    final Object[] values;

    Row(String[] names, Object[] values) {
        this.names = names;
        this.values = values;
    }

    Map<String, Object> map() {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int n = 0; n < names.length; n++) {
            map.put(names[n], values[n]);
        }
        return map;
    }
}
